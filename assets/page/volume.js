/** How loud the page is: one slider for the scene, for takes and for voices. */

const elements = new Set();
let level = 1;

/** Let a sound of its own follow the slider. @param {HTMLAudioElement} audio @returns {HTMLAudioElement} */
export function follow(audio) {
  elements.add(audio);
  audio.volume = level;
  return audio;
}

/** @param {number} volume 0 to 1 */
export function setVolume(volume) {
  level = volume;
  for (const audio of elements) audio.volume = volume;
}
