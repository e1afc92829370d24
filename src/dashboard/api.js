/**
 * Asking the service: one way for all requests, secrets in memory alone, errors with code and message, event streams by
 * `fetch`.
 *
 * Not `EventSource`: it cannot send a header, and a secret in an address ends up in logs. Secrets are forgotten with
 * the page.
 */
// @ts-check

/**
 * Which secret a request needs: that of the node this page came from, or that of the SSPs behind a scheduler. @typedef
 * {"node" | "ssp"} Door
 */

export class Refused extends Error {
  /**
   * @param {number} status @param {string | undefined} code @param {string} message @param {unknown} details @param
   * {Door} door @param {string | undefined} [secret] that the request was sent with
   */
  constructor(status, code, message, details, door, secret) {
    super(message)
    this.secret = secret
    this.status = status
    this.code = code
    this.details = details
    this.door = door
  }
}

/** @type {{ [door in Door]: string | undefined }} */
const secrets = { node: undefined, ssp: undefined }

/**
 * A scheduler that asks for a secret itself judges what it passes on by that, and the SSPs are asked with theirs.
 * @param {Door} door
 */
const secretFor = (door) => secrets[door] ?? secrets.node

/** @param {Door} door */
export const hasSecret = (door) => secrets[door] !== undefined

/**
 * Whether a refused request was sent with the secret that is known now: another may have been given while it was on its
 * way. @param {Refused} refused
 */
export const isRefused = ({ door, secret }) => secretFor(door) === secret

/** @param {Door} door @param {string | undefined} secret */
export const keepSecret = (door, secret) => {
  secrets[door] = secret
}

export const forgetSecrets = () => {
  secrets.node = secrets.ssp = undefined
}

/**
 * @typedef {{ method?: string, body?: unknown, door?: Door, signal?: AbortSignal, keepalive?: boolean, headers?: {
 * [name: string]: string } }} Ask
 */

/** @param {string} path @param {Ask} ask */
const send = async (path, { body, door = "node", headers = {}, keepalive = false, method = "GET", signal }) => {
  const secret = secretFor(door)
  const response = await fetch(path, {
    method,
    keepalive,
    cache: "no-store",
    credentials: "omit",
    redirect: "error",
    ...(signal === undefined ? {} : { signal }),
    headers: {
      ...headers,
      ...(body === undefined ? {} : { "content-type": "application/json" }),
      ...(secret === undefined ? {} : { authorization: `Bearer ${secret}` })
    },
    ...(body === undefined ? {} : { body: JSON.stringify(body) })
  }).catch((error) => {
    if (signal?.aborted) throw error
    throw new Refused(0, "NO_ANSWER", "the service does not answer; is it running?", undefined, door)
  })
  if (response.ok) return response
  const text = await response.text()
  /** @type {{ code?: unknown, message?: unknown, details?: unknown }} */
  let error = {}
  try {
    error = JSON.parse(text)
  } catch {
    /* An answer of a proxy in between: its status is all there is to say. */
  }
  throw new Refused(
    response.status,
    typeof error.code === "string" ? error.code : `HTTP ${response.status}`,
    typeof error.message === "string" ? error.message : response.statusText || "no reason given",
    error.details,
    door,
    secret
  )
}

/**
 * Integers beyond 2^53 as text, since as numbers they would be shown with other digits. Strings are matched too, so that
 * nothing within one is taken for a number.
 * @param {string} text
 */
export const parse = (text) =>
  JSON.parse(
    /\d{16}/.test(text)
      ? text.replace(/"(?:[^"\\]|\\.)*"|-?\d[\d.eE+-]*/g, (token) =>
          /^-?\d+$/.test(token) && !Number.isSafeInteger(Number(token)) ? `"${token}"` : token
        )
      : text
  )

/** @param {string} path @param {Ask} [ask] @returns {Promise<any>} */
export const call = async (path, ask = {}) => parse(await (await send(path, ask)).text())

/**
 * Follows an event stream until it ends or is aborted.
 * @param {string} path @param {Ask} ask @param {(event: string, data: any, id: string | undefined) => void} onEvent
 */
export const follow = async (path, ask, onEvent) => {
  const { body } = await send(path, ask)
  if (body === null) return
  const reader = body.pipeThrough(new TextDecoderStream()).getReader()
  let rest = ""
  for (;;) {
    const { done, value } = await reader.read()
    if (done) return
    const blocks = (rest + value).split("\n\n")
    rest = blocks.pop() ?? ""
    for (const block of blocks) emit(block, onEvent)
  }
}

/** @param {string} block @param {(event: string, data: any, id: string | undefined) => void} onEvent */
const emit = (block, onEvent) => {
  let event = "message"
  let data = ""
  /** @type {string | undefined} */
  let id
  for (const line of block.split("\n")) {
    if (line.startsWith("event: ")) event = line.slice(7)
    else if (line.startsWith("data: ")) data += line.slice(6)
    else if (line.startsWith("id: ")) id = line.slice(4)
  }
  if (data !== "") onEvent(event, parse(data), id)
}
