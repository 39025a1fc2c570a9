"""The page speaks the browser's language, or the one chosen on it."""

import json

import pytest
from playwright.sync_api import expect

pytestmark = pytest.mark.browser


@pytest.fixture
def opened(server, browser):
    """Opens the studio in a browser of some languages; the page, and the texts it asked for."""
    contexts = []

    def open_page(locale, answers=None):
        context = browser.new_context(locale=locale)
        contexts.append(context)
        page = context.new_page()
        asked = []
        page.on("request", lambda one: "/texts/" in one.url and asked.append(one.url))
        if answers is not None:
            body = f"globalThis.tablereadTexts = {json.dumps(answers)};"
            page.route("**/texts/*.js", lambda route: route.fulfill(body=body))
        page.goto(server.url)
        page.wait_for_selector("body[data-tableread=ready]")
        return page, asked

    yield open_page
    for context in contexts:
        context.close()


def test_a_browser_of_another_language_sees_the_page_in_it(opened):
    page, asked = opened("de-AT")
    assert page.evaluate("document.documentElement.lang") == "de"
    assert [url.rsplit("/")[-1] for url in asked] == ["de.js"]
    expect(page.locator("#cast-title")).to_have_text("Rollen")
    page.click("#project-open")
    expect(page.locator("#project-delete")).to_have_text("Löschen")
    page.keyboard.press("Escape")
    page.click("#model-chip")
    expect(page.locator("#backends")).to_contain_text("Ein Roboter, der sofort liest")
    page.keyboard.press("Escape")
    expect(page.locator("#script-language option[value=fi]")).to_have_text("Finnisch")


def test_english_asks_for_nothing_more(opened):
    page, asked = opened("en-GB")
    assert asked == []
    assert page.inner_text("#cast-title") == "Cast"


def test_a_language_that_is_not_there_leaves_english(opened):
    page, asked = opened("nl-NL")
    assert asked == []
    assert page.inner_text("#cast-title") == "Cast"


def test_a_chosen_language_stays(opened):
    page, _ = opened("en-GB")
    page.click("#project-open")
    page.select_option("#page-language", "fr")
    page.wait_for_function("document.documentElement.lang === 'fr'")
    page.wait_for_selector("body[data-tableread=ready]")
    page.reload()
    page.wait_for_selector("body[data-tableread=ready]")
    assert page.evaluate("document.documentElement.lang") == "fr"
    page.click("#project-open")
    page.select_option("#page-language", "")
    page.wait_for_function("document.documentElement.lang !== 'fr'")
    expect(page.locator("#cast-title")).to_have_text("Cast")


def test_what_a_catalogue_lacks_is_english_and_users_text_is_never_translated(opened):
    texts = {"Cast": "Rollen", "Play line {0}": "Zeile {0} abspielen", "Undo": "Zurück"}
    page, _ = opened("de-DE", {"language": "de", "texts": texts})
    expect(page.locator("#cast-title")).to_have_text("Rollen")
    assert page.inner_text("#library-title") == "Voices"
    page.evaluate(
        """async () => {
          const url = new URL('studio/projects', location.origin + location.pathname);
          const body = JSON.stringify({ name: 'Undo', text: 'Cast: Undo' });
          const headers = { 'Content-Type': 'application/json' };
          const made = await (await fetch(url, { method: 'POST', body, headers })).json();
          await window.tableread.projects.adopt(made);
        }"""
    )
    row = page.locator("#lines .line")
    expect(row.locator(".line-text")).to_have_text("Undo")
    expect(row.locator(".line-speaker")).to_have_text("Cast")
    expect(row.locator(".line-play")).to_have_attribute("aria-label", "Zeile 1 abspielen")
    expect(page.locator("#project-title")).to_have_text("Undo")


def test_the_pages_that_only_read_are_in_it_too(opened, server):
    page, asked = opened("fr-FR")
    asked.clear()
    page.goto(f"{server.url}studio/read?project=none")
    expect(page.locator("#follow")).to_have_text("Suivre")
    assert [url.rsplit("/")[-1] for url in asked] == ["fr.js"]
