/** The speaker library's part of the studio's HTTP interface. */
import { json, request } from "./api.js";

const part = encodeURIComponent;
const speaker = (id) => `speakers/${part(id)}`;
const sample = (id, sampleId) => `${speaker(id)}/samples/${part(sampleId)}`;
const upload = (id) => `uploads/${part(id)}`;

export const library = () => json("speakers");
export const addSpeaker = (body) => json("speakers", { method: "POST", body });
export const changeSpeaker = (id, body) => json(speaker(id), { method: "PATCH", body });
export const removeSpeaker = (id) => request(speaker(id), { method: "DELETE" });
export const addSample = (id, body) => json(`${speaker(id)}/samples`, { method: "POST", body });
export const changeSample = (id, sampleId, body) =>
  json(sample(id, sampleId), { method: "PATCH", body });
export const removeSample = (id, sampleId) => json(sample(id, sampleId), { method: "DELETE" });
export const restoreSample = (id, formerId) =>
  json(`${speaker(id)}/formers/${part(formerId)}/restore`, { method: "POST" });
export const forgetSample = (id, formerId) =>
  json(`${speaker(id)}/formers/${part(formerId)}`, { method: "DELETE" });
export const restoreSpeaker = (id) => json(`speakers/removed/${part(id)}/restore`, { method: "POST" });
export const forgetSpeaker = (id) => request(`speakers/removed/${part(id)}`, { method: "DELETE" });
/** A kept sample as an upload, to be looked at and cut. */
export const openSample = (id, sampleId, signal) =>
  json(`${sample(id, sampleId)}/open`, { method: "POST", signal });
/** @param {object} mended {upload_id, transcript, start_s, end_s, repaired} */
export const putBack = (id, sampleId, mended) =>
  json(`${sample(id, sampleId)}/recording`, { method: "PUT", body: mended });
/** @param {Blob} file a voice that was saved as one file */
export const bringIn = (file) => json("speakers/import", { method: "POST", body: file });

/** @param {Blob} sound @param {string} name what messages call it */
export const send = (sound, name, signal) =>
  json(`uploads?name=${part(name.slice(0, 200))}`, { method: "POST", body: sound, signal });
export const check = (id, cut) => json(`${upload(id)}/check`, { method: "POST", body: cut });
export const drop = (id) => request(upload(id), { method: "DELETE" });

/** A sentence in a speaker's voice, as a sound. */
export const preview = (id, body, signal) => sound(`${speaker(id)}/preview`, body, signal);
/** A sentence in the voice of an upload, as a sound. */
export const audition = (id, body, signal) => sound(`${upload(id)}/preview`, body, signal);
/** @param {Blob} recording to be said in a speaker's voice */
export const act = (id, recording, signal) => sound(`${speaker(id)}/act`, recording, signal);

export const sampleUrl = (id, sampleId) => `studio/${sample(id, sampleId)}.wav`;
export const voiceUrl = (id) => `studio/${speaker(id)}/voice`;
/** A part of an upload, fetched whole: Safari plays from an address only what it can ask for in pieces. */
export const uploadSound = async (id, { start_s: start, end_s: end, repaired }, signal) => {
  const cut = `start_s=${start}&end_s=${end}&repaired=${repaired}`;
  return (await request(`${upload(id)}/audio.wav?${cut}`, { signal })).blob();
};

async function sound(path, body, signal) {
  return (await request(path, { method: "POST", body, signal })).blob();
}
