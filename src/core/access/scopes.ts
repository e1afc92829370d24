/**
 * Scopes of secrets, for both servers (D15).
 *
 * One list, because the settings, the declarations of the endpoints and the pages must mean the same by a word.
 */

/** Each scope and what it is for. */
export const scopeMeanings = {
  ingest: "record changes, jobs and log lines in",
  read: "views, queries, jobs and figures out; every record can be read",
  register: "views registered and unregistered",
  admin: "reset, compare, repair, retry and cancel",
  metrics: "the figures for Prometheus",
  ssp: "at the scheduler: registration, heartbeats and job results of the SSP that the secret is named after"
} as const

export type Scope = keyof typeof scopeMeanings

/** All scopes; the one secret of the specification opens them. */
export const scopes = Object.keys(scopeMeanings) as ReadonlyArray<Scope>

export const isScope = (word: string): word is Scope => Object.hasOwn(scopeMeanings, word)
