/**
 * Addresses of mail, domains and URLs: thousands of random ones, against the real database.
 *
 * Why so: what an address is has more corners than anybody writes down; the pieces here are the ones that such grammars
 * speak of.
 */
import { describe, expect } from "vitest"
import type { Rng } from "../../../kit/data/random.ts"
import { runs, seeded } from "../../../kit/data/random.ts"
import { fromRecords } from "../../../src/core/surql/evaluate/memory.ts"
import { makeBudget } from "../../../src/core/surql/evaluate/scope.ts"
import { address } from "../../../src/core/surql/functions/address.ts"
import { embedded } from "./embedded.ts"

const db = embedded()

const some = (random: Rng, pieces: ReadonlyArray<string>, most: number): string =>
  Array.from({ length: random.below(most + 1) }, () => random.pick(pieces)).join("")

const hostPieces = [
  "a",
  "B",
  "example",
  "com",
  ".",
  ".",
  "..",
  "-",
  "1",
  "0",
  "256",
  "1e5",
  "inf",
  "ü",
  "李",
  "_",
  "xn--mnchen-3ya",
  "0x7f",
  "%41",
  " ",
  "1.2.3.4",
  "[::1]",
  "[2001:DB8:0:0::1]",
  "[::ffff:1.2.3.4]",
  "[1.2.3.4]",
  "[::1",
  "x".repeat(63),
  "x".repeat(64)
]
const userPieces = [
  "a",
  "j",
  ".",
  ".",
  "..",
  '"',
  " ",
  "@",
  "+",
  "_",
  "(",
  ")",
  "\\",
  "ü",
  "李",
  "!",
  "{",
  "'",
  "\n",
  "x".repeat(64)
]
const textPieces = [
  "a",
  "B",
  "/",
  "/",
  "..",
  ".",
  "%2e",
  "%",
  "%zz",
  " ",
  "'",
  '"',
  "<",
  ">",
  "`",
  "{",
  "}",
  "|",
  "^",
  "\\",
  "ü",
  "李",
  "\t",
  "\n",
  "\u0001",
  "?",
  "&=",
  "#",
  ";",
  ":",
  "@",
  "~",
  "[",
  "]"
]

const mail = (random: Rng): string => {
  const user = random.chance(0.3) ? `"${some(random, userPieces, 4)}"` : some(random, userPieces, 5)
  return user + (random.chance(0.95) ? "@" : "") + some(random, hostPieces, random.chance(0.5) ? 1 : 4)
}

const link = (random: Rng): string => {
  const scheme = random.pick([
    "http:",
    "https:",
    "HTTPS:",
    "ftp:",
    "ws:",
    "wss:",
    "file:",
    "foo:",
    "mailto:",
    "data:",
    "javascript:",
    "",
    "1a:",
    "a+b:",
    " http:"
  ])
  const host =
    random.pick(["//", "//", "//", "/", "", "\\\\"]) +
    (random.chance(0.2) ? `${some(random, userPieces, 2)}@` : "") +
    some(random, hostPieces, 4)
  const port = random.chance(0.4)
    ? `:${random.pick(["", "80", "443", "8080", "0", "65535", "65536", "99999", "-1", "x", "0080", "21"])}`
    : ""
  const tail =
    (random.chance(0.7) ? "/" + some(random, textPieces, 6) : "") +
    (random.chance(0.4) ? "?" + some(random, textPieces, 4) : "") +
    (random.chance(0.4) ? "#" + some(random, textPieces, 4) : "")
  // The database takes a backslash behind an empty port, against the standard.
  return (scheme + host + port + tail).replace(/:\\/g, ":")
}

const scope = {
  doc: undefined,
  params: {},
  parent: undefined,
  source: fromRecords([]),
  budget: makeBudget(1e9, "TEST")
}

const compare =
  (names: ReadonlyArray<string>, make: (random: Rng) => string, fewest: number) =>
  async (random: Rng): Promise<void> => {
    const texts = Array.from({ length: runs(4000) }, () => make(random))
    const [theirs] = await db.query<[ReadonlyArray<ReadonlyArray<unknown>>]>(
      `RETURN $texts.map(|$t| [${names.map((name) => `${name}($t)`).join(", ")}])`,
      { texts }
    )
    const wrong: Array<string> = []
    let taken = 0
    for (const [i, text] of texts.entries()) {
      const mine = names.map((name) => address[name]!.call([text], scope, name))
      if (mine.some((v) => v !== undefined && v !== false)) taken++
      names.forEach((name, k) => {
        if (mine[k] !== theirs[i]![k])
          wrong.push(`${name}(${JSON.stringify(text)}): ${String(theirs[i]![k])}, ours ${String(mine[k])}`)
      })
    }
    expect(wrong.slice(0, 40).join("\n")).toBe("")
    expect(taken).toBeGreaterThan(texts.length * fewest)
  }

describe("addresses", () => {
  const file = "test/core/surql/address.test.ts"
  seeded(
    "of mail are taken apart and refused as by the database",
    file,
    compare(["string::is_email", "parse::email::user", "parse::email::host"], mail, 0.05)
  )
  seeded(
    "of domains and hosts are the database's",
    file,
    compare(
      ["string::is_domain", "string::is_ip", "string::is_ipv4", "string::is_ipv6"],
      (random) => some(random, hostPieces, 4),
      0.1
    )
  )
  seeded(
    "that are URLs are taken apart and refused as by the database",
    file,
    compare(
      [
        "string::is_url",
        ...["domain", "fragment", "host", "path", "port", "query", "scheme"].map((part) => `parse::url::${part}`)
      ],
      link,
      0.3
    )
  )
})
