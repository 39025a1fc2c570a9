define m = Character("Mira", color="#c8ffc8")
define j = Character('Joss')
image bg jetty = "jetty.png"

label start:
    scene bg jetty
    with fade
    play music "waves.ogg"
    "The jetty at dusk."
    m angry "Did you {i}move{/i} the boat?"
    j "Which boat?"
    menu:
        "The only boat.":
            m "The only boat."
            jump sea
        "Never mind.":
            pass

label sea:
    show mira sad at left
    m "There it goes, [name]."
    return
