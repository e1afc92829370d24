/**
 * Settings as a table: one documented knob per environment variable, read all at once with every fault named.
 *
 * The table is the documentation: `--help` and the README are printed from it, so neither can lag behind the settings
 * read.
 */
import { levenshtein } from "../levenshtein.ts"

/** One setting. `read` answers undefined for a text that is not allowed. */
export interface Knob<A> {
  readonly env: string
  /** Default as shown in tables; empty if there is none. */
  readonly defaultText: string
  readonly unit: string
  readonly meaning: string
  /** The values allowed, in words that finish "must be ...". */
  readonly allowed: string
  /** The value is never shown; it may also come from the file that `<env>_FILE` names. */
  readonly secret: boolean
  readonly fallback: A
  readonly read: (text: string) => A | undefined
  /** Faults of a text that {@link read} refuses, if they say more than `allowed`; they show no secret. */
  readonly explain?: (text: string) => ReadonlyArray<string>
}

export type Knobs = { readonly [name: string]: Knob<unknown> }
export type Values<K extends Knobs> = { readonly [N in keyof K]: K[N] extends Knob<infer A> ? A : never }

interface Words {
  readonly meaning: string
  readonly unit?: string
}

/** Fields that every kind of setting has. */
const documented = (env: string, { meaning, unit = "" }: Words) => ({ env, unit, secret: false, meaning })

export const integer = (
  env: string,
  fallback: number,
  [least, most]: readonly [number, number],
  words: Words
): Knob<number> => ({
  ...documented(env, words),
  fallback,
  defaultText: String(fallback),
  allowed: `a whole number from ${least} to ${most}`,
  read: (text) => {
    const value = /^\d{1,15}$/.test(text) ? Number(text) : NaN
    return value >= least && value <= most ? value : undefined
  }
})

export const choice = <const A extends string>(
  env: string,
  options: ReadonlyArray<A>,
  fallback: A | undefined,
  words: Words & { readonly defaultText?: string }
): Knob<A | undefined> => ({
  ...documented(env, words),
  fallback,
  defaultText: words.defaultText ?? fallback ?? "",
  allowed: `one of ${options.join(", ")}`,
  read: (text) => options.find((option) => option === text.toLowerCase())
})

export const text = (
  env: string,
  words: Words & {
    readonly defaultText?: string
    readonly allowed?: string
    readonly read?: (text: string) => string | undefined
  }
): Knob<string | undefined> => ({
  ...documented(env, words),
  fallback: undefined,
  defaultText: words.defaultText ?? "",
  allowed: words.allowed ?? "text",
  read: words.read ?? ((value) => value)
})

/** A secret that fits into a header: visible ASCII without blanks. */
export const secret = (env: string, words: Words): Knob<string | undefined> => ({
  ...documented(env, words),
  fallback: undefined,
  defaultText: "",
  secret: true,
  allowed: "visible ASCII characters without blanks",
  read: (value) => (/^[\x21-\x7e]+$/.test(value) ? value : undefined)
})

/** Several secrets, separated by characters that no secret has. */
export const secrets = (env: string, words: Words): Knob<ReadonlyArray<string> | undefined> => ({
  ...documented(env, words),
  fallback: undefined,
  defaultText: "",
  secret: true,
  allowed: "one or several secrets of visible ASCII characters, separated by blanks or line breaks",
  read: (value) => {
    const all = value.split(/\s+/).filter((each) => each !== "")
    return all.length > 0 && all.every((each) => /^[\x21-\x7e]+$/.test(each)) ? all : undefined
  }
})

/** A password, which never travels in a header: any text without NUL. */
export const password = (env: string, words: Words): Knob<string | undefined> => ({
  ...secret(env, words),
  allowed: "any text",
  read: (value) => (value.includes("\0") ? undefined : value)
})

/** Limits that both servers have. */
const requestTimeoutSecs = integer("SVC_REQUEST_TIMEOUT_SECS", 120, [1, 3600], {
  unit: "s",
  meaning:
    "Longest time for a request to arrive whole (beyond it 408), and longest time in which a client takes nothing of its answer (beyond it the connection is cut)."
})

/** Largest request body, in bytes, where nothing is set. */
export const defaultBodyBytes = 2_097_152

/** The setting of the largest request body; `meaning` says what else the limit means for the server. */
export const maxBodyBytes = (meaning: string): Knob<number> =>
  integer("SVC_MAX_BODY_BYTES", defaultBodyBytes, [1024, 268_435_456], {
    unit: "bytes",
    meaning: `Largest request body; beyond it 413. ${meaning}`
  })

/** Limits on the resources that clients may use, the same for both servers. */
const maxConnections = integer("SVC_MAX_CONNECTIONS", 10_000, [1, 1_000_000], {
  unit: "connections",
  meaning:
    "Most open connections. One beyond it may ask a probe (`/health`, `/livez`, `/readyz`, `/version`) or is told 503 OVERLOADED, and closes; 32 of those at once."
})
export const maxConnectionsPerAddress = integer("SVC_MAX_CONNECTIONS_PER_ADDRESS", 0, [0, 1_000_000], {
  unit: "connections",
  meaning:
    "Most of them from one client address (of IPv6, from one /64), with the same answer beyond it; 0 for half of SVC_MAX_CONNECTIONS. Clients behind one proxy have one address: with a proxy in front set it to SVC_MAX_CONNECTIONS, and limit clients there."
})
export const maxBodyBytesTotal = integer("SVC_MAX_BODY_BYTES_TOTAL", 67_108_864, [1024, 1e12], {
  unit: "bytes",
  meaning:
    "Most bytes of request bodies that have begun and not ended, all together; beyond it 503 OVERLOADED. Where no secret is asked for, a quarter for one address. One body of the largest size always fits."
})

const maxTurnMs = integer("SVC_MAX_TURN_MS", 30_000, [0, 3_600_000], {
  unit: "ms",
  meaning:
    "Longest turn of the event loop: a process that computes for longer without a pause says what it evaluates and ends with exit code 5. Time in which it did not compute (a suspended machine, a debugger) does not count. 0 for no limit."
})

export const maxMemory = integer("SVC_MAX_MEMORY", 75, [1, 100], {
  unit: "%",
  meaning:
    "Most of the container's memory (cgroup; else the machine's) that the heap may take; where V8 allows less (--max-old-space-size), that counts. With 85 % of it in use after a collection, changes that grow and new views are answered 503 OVERLOADED until less than 80 % is."
})

const rateLimit = integer("SVC_RATE_LIMIT", 0, [0, 1_000_000], {
  unit: "requests/s",
  meaning:
    "Most requests per second from one client address, as many again at once; beyond it 429 RATE_LIMITED. 0 for no limit. Probes are not counted."
})

const pem = (env: string, meaning: string): Knob<string | undefined> =>
  text(env, { meaning, allowed: "the path of a PEM file" })

/** TLS of a server and between nodes; `node/config/tls.ts` says what the files mean for each other. */
const tlsCertFile = pem(
  "SVC_TLS_CERT_FILE",
  "Certificate of this server, its chain behind it; with SVC_TLS_KEY_FILE the port speaks TLS (1.2 or later) and nothing else. Read again on SIGHUP."
)
const tlsKeyFile = pem("SVC_TLS_KEY_FILE", "Private key of SVC_TLS_CERT_FILE, without a passphrase.")
const tlsCaFile = pem(
  "SVC_TLS_CA_FILE",
  "Certificates of the authority of a cluster's nodes. Scheduler and SSPs then speak TLS with each other only, each shows its certificate, and each is verified against these alone; what only nodes ask is answered 403 to everybody else."
)
const auditTurnedPerMinute = integer("SVC_AUDIT_TURNED_PER_MINUTE", 20, [0, 1_000_000], {
  unit: "lines",
  meaning:
    "Most audit lines a minute about callers with one secret, or with none that is known, who are turned away (401, 403); the rest are counted, and the count is a line."
})

const origin = /^https?:\/\/[a-z0-9._[\]:-]+$/

const originList = {
  fallback: undefined,
  defaultText: "none",
  allowed: "origins as `https://app.example.com`, separated by commas, or `*` alone",
  read: (text: string) => {
    const all = text
      .split(/[\s,]+/)
      .filter((each) => each !== "")
      .map((each) => each.toLowerCase())
    const fine =
      all.length > 0 &&
      (all.every((each) => origin.test(each) && URL.canParse(each) && new URL(each).origin === each) ||
        (all.length === 1 && all[0] === "*"))
    return fine ? all : undefined
  }
}

/** Origins as browsers send them: scheme, host and port, nothing behind. */
export const corsOrigins: Knob<ReadonlyArray<string> | undefined> = {
  ...documented("SVC_CORS_ORIGINS", {
    meaning:
      "Origins whose pages may call this service from a browser; `*` for any. Cookies are never asked for: a page needs the secret."
  }),
  ...originList
}

/** Limits of pages that follow views with tokens. */
export const browser = {
  streamBuffer: integer("SVC_STREAM_BUFFER", 1000, [1, 1_000_000], {
    unit: "deltas",
    meaning: "Deltas kept per view that is followed, so that a stream resumes without a new snapshot."
  }),
  streamViews: integer("SVC_STREAM_VIEWS", 100, [1, 10_000], {
    unit: "views",
    meaning: "Most views at a time on one connection of `POST /stream`, and in one token."
  }),
  viewTokenTtlSecs: integer("SVC_VIEW_TOKEN_TTL", 900, [10, 86_400], {
    unit: "s",
    meaning: "Longest time that a token for views is good for."
  }),
  browserOrigins: {
    ...documented("SVC_BROWSER_ORIGINS", {
      meaning:
        "Origins whose pages may read, follow and touch views from a browser, with a token for them, and call nothing else; `*` for any."
    }),
    ...originList
  } satisfies Knob<ReadonlyArray<string> | undefined>
}

/** Names of SSPs and schedulers, and of the secrets of SSPs. */
export const nodeName = /^[A-Za-z0-9_:-][A-Za-z0-9_.:-]{0,127}$/
export const nodeNameAllowed = "1 to 128 letters, digits, `_`, `-`, `.` or `:`, not starting with a dot"

export const reconcileIntervalSecs = integer("SVC_RECONCILE_INTERVAL_SECS", 600, [0, 86_400], {
  unit: "s",
  meaning: "Pause between two compares with a database server, which repair what differs; 0 for none."
})

export const databaseLeaseSecs = integer("SVC_DATABASE_LEASE_SECS", 10, [1, 3_600], {
  unit: "s",
  meaning:
    "How long a database server is this service's to follow without a word from it; it is renewed three times as often. A second SSP without a scheduler, or a second scheduler, stands by and takes over when it has lapsed."
})

export const changesPerRead = integer("SVC_CHANGES_PER_READ", 20_000, [1, 1_000_000], {
  unit: "rows",
  meaning:
    "Rows of a database's change table that are read at once, with their records, and applied as one step; what waits beyond it is taken in parts. Fewer are where their records are large beside the heap: a step is 1 to 64 MiB of text. A scheduler reads no more than SVC_MAX_PENDING_CHANGES."
})

export const changesBehindSecs = integer("SVC_CHANGES_BEHIND_SECS", 60, [0, 86_400], {
  unit: "s",
  meaning:
    "A warning is logged when a database's change table has not been read to its end for longer, because reads fail or more is written than is taken; 0 logs none."
})

export const schemaIntervalMs = integer("SVC_SCHEMA_INTERVAL_MS", 1_000, [0, 3_600_000], {
  unit: "ms",
  meaning:
    "Pause between two looks at what a database server defines (tables, fields, functions, parameters), one short statement each; 0 looks at the start only."
})

export const defineEvents = choice("SVC_DEFINE_EVENTS", ["on", "off"], "on", {
  meaning:
    "Whether a table that is made in a database with a change table gets its event from this service, if its user may define events; else its views follow only what is posted and the compare, and it is named in a warning."
})

/** How both servers log. */
export const logging = {
  logLevel: choice("SVC_LOG_LEVEL", ["error", "warn", "info", "debug", "trace"], "info", {
    meaning: "Lowest level that is logged."
  }),
  logFormat: choice("SVC_LOG_FORMAT", ["json", "text"], undefined, {
    meaning: "Shape of log lines.",
    defaultText: "text on a terminal, json elsewhere"
  })
}

/** The settings of a server's port, the same for both servers. */
export const server = {
  tlsCertFile,
  tlsKeyFile,
  tlsCaFile,
  maxConnections,
  maxConnectionsPerAddress,
  maxBodyBytesTotal,
  requestTimeoutSecs,
  rateLimit,
  maxTurnMs,
  maxMemory,
  auditTurnedPerMinute,
  corsOrigins
}

export interface ReadSources {
  readonly env: { readonly [name: string]: string | undefined }
  readonly readText: (path: string) => { readonly text: string } | { readonly fault: string }
}

/** Text of a setting, read from its variable or from the file that its `_FILE` variant names. */
const found = (knob: Knob<unknown>, { env, readText }: ReadSources, faults: Array<string>): string | undefined => {
  const direct = env[knob.env]
  if (!knob.secret) return direct
  const path = env[`${knob.env}_FILE`]
  if (path === undefined || path === "") return direct
  if (direct !== undefined && direct !== "") {
    faults.push(`${knob.env} and ${knob.env}_FILE are both set; set one of them`)
    return undefined
  }
  return secretFile(`${knob.env}_FILE`, path, { readText }, faults)
}

/**
 * Content of a file with a secret, without the line break at its end. `name`: the setting that names the file, for
 * faults; `what`: the kind of secret expected.
 */
export const secretFile = (
  name: string,
  path: string,
  { readText }: Pick<ReadSources, "readText">,
  faults: Array<string>,
  what = "the secret"
): string | undefined => {
  const content = readText(path)
  if ("fault" in content) {
    faults.push(`${name}: ${path} cannot be read (${content.fault}); must name a readable file that holds ${what}`)
    return undefined
  }
  const line = content.text.replace(/\r?\n$/, "")
  if (line === "") faults.push(`${name}: ${path} is empty; must name a file that holds ${what}`)
  return line
}

/** A token that travels in a header, from a file. */
export const tokenFile = (
  name: string,
  path: string,
  sources: Pick<ReadSources, "readText">,
  faults: Array<string>
): string | undefined => {
  const before = faults.length
  const token = secretFile(name, path, sources, faults)
  if (token !== undefined && faults.length === before && !/^[\x21-\x7e]+$/.test(token))
    faults.push(`${name}: ${path} holds a value that is not shown; must be visible ASCII characters without blanks`)
  return token
}

/** The present value of a secret's file; undefined if the secret comes from no file. */
export const rereadSecret = <A>(
  knob: Knob<A>,
  sources: ReadSources,
  faults: Array<string>
): { readonly value: A } | undefined => {
  if ((sources.env[`${knob.env}_FILE`] ?? "") === "") return undefined
  const text = found(knob, sources, faults)
  if (faults.length > 0) return undefined
  const value = text === undefined ? undefined : knob.read(text)
  if (value === undefined) faults.push(refusal(knob, `${knob.env}_FILE holds`, text ?? ""))
  return value === undefined ? undefined : { value }
}

/** User names and passwords inside an address are not shown either. */
const masked = (value: string): string => value.replace(/\/\/[^@/]*@/, "//…@")

const shown = (knob: Knob<unknown>, value: string): string =>
  knob.secret
    ? "a value that is not shown"
    : JSON.stringify(masked(value.length > 80 ? `${value.slice(0, 80)}…` : value))

/** Message of a refused text; `begin`: name of the setting and a verb. */
const refusal = (knob: Knob<unknown>, begin: string, text: string): string =>
  `${begin} ${shown(knob, text)}${knob.explain === undefined ? "" : ` in which ${knob.explain(text).slice(0, 20).join(", ")}`}; must be ${knob.allowed}`

/**
 * Every knob's value. Empty text counts as unset. Faults are added to `faults`, each naming key, value and the values
 * allowed.
 */
export const readAll = <const K extends Knobs>(knobs: K, sources: ReadSources, faults: Array<string>): Values<K> => {
  const values: { [name: string]: unknown } = {}
  for (const [name, knob] of Object.entries(knobs)) {
    const given = found(knob, sources, faults)
    const value = given === undefined || given === "" ? knob.fallback : knob.read(given)
    if (value === undefined && given !== undefined && given !== "") faults.push(refusal(knob, `${knob.env} is`, given))
    values[name] = value
  }
  return values as Values<K>
}

/** The known name closest to `name`, if it is close enough to be meant. */
export const closest = (name: string, known: Iterable<string>): string | undefined => {
  if (name.length > 100) return undefined
  let best: string | undefined
  let bestDistance = Math.max(2, Math.floor(name.length / 3)) + 1
  for (const candidate of known) {
    const d = levenshtein(name.toLowerCase(), candidate.toLowerCase())
    if (d < bestDistance) {
      best = candidate
      bestDistance = d
    }
  }
  return best
}

/** `; did you mean "x"?` or nothing. */
export const suggestion = (name: string, known: Iterable<string>): string => {
  const near = closest(name, known)
  return near === undefined ? "" : `; did you mean ${near}?`
}

/** Names in `env` that look like ours and are not (D5a): warned about, because platforms inject such names. */
export const unknownNames = (
  env: { readonly [name: string]: string | undefined },
  knobs: Knobs,
  others: ReadonlyArray<string>
): ReadonlyArray<string> => {
  const known = new Set<string>(others)
  for (const knob of Object.values(knobs)) {
    known.add(knob.env)
    if (knob.secret) known.add(`${knob.env}_FILE`)
  }
  return Object.keys(env)
    .filter((name) => /^(?:SVC|STORE)_/.test(name) && !known.has(name))
    .sort()
    .map((name) => `${name} is not a setting of this service and is ignored${suggestion(name, known)}`)
}

/** Rows for `--help`, name and default first, the meaning below. */
export const helpRows = (knobs: Knobs): string =>
  Object.values(knobs)
    .map((knob) => {
      const unit = knob.unit === "" ? "" : ` ${knob.unit}`
      const fallback = knob.defaultText === "" ? "unset" : `default ${knob.defaultText}${unit}`
      const file = knob.secret ? ` (or ${knob.env}_FILE)` : ""
      return `  ${knob.env}${file}, ${fallback}\n      ${knob.meaning} Allowed: ${knob.allowed}.`
    })
    .join("\n")
