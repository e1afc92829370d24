/**
 * Text from outside as messages show it: quoted, so that it cannot be mistaken for the service's own words, and cut if
 * it is long.
 */

/** Most characters shown. */
const most = 200

/** The text in double quotes with its escapes, cut after {@link most} characters. */
export const shown = (text: string): string => JSON.stringify(text.length > most ? `${text.slice(0, most)}…` : text)
