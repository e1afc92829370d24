/**
 * Text from outside as our messages show it: quoted, so that it cannot pass for our own words, and cut where it
 * is long.
 */

/** Characters that are shown. */
const most = 200

export const shown = (text: string): string => JSON.stringify(text.length > most ? `${text.slice(0, most)}…` : text)
