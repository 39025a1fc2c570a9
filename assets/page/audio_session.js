/** What the page's sound is for, where the browser wants to be told: on iPhones and iPads. */

/**
 * As "playback" the scene is heard with the silent switch on, as films and music are. No microphone can be opened then:
 * that takes "play-and-record".
 * @param {"playback" | "play-and-record"} purpose
 */
export function soundIsFor(purpose) {
  if (navigator.audioSession) navigator.audioSession.type = purpose;
}
