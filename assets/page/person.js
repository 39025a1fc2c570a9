/** Who this browser is to the studio: the same in all its pages, for good. */
import { newId } from "./dialog.js";
import { stored } from "./stored.js";

const KEY = "tableread.person";

export const PERSON = stored.get(KEY) ?? newId();
stored.set(KEY, PERSON);
