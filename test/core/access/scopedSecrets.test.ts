/**
 * Secrets by name and scope (D15): what is read, what is refused, and that no refusal shows a secret.
 *
 * Every field of a line is also tried in the place of another, because that is how a secret gets into a log.
 */
import { describe, expect, it } from "vitest"
import { hashOf, knob, parse, secretOfSsp } from "../../../src/core/access/scopedSecrets.ts"
import { scopes } from "../../../src/core/access/scopes.ts"
import * as Settings from "../../../src/core/settings/settings.ts"

const a = "aaaaaaaaaaaaaaaa-first"
const b = "bbbbbbbbbbbbbbbb-second"
const faults = (text: string) => parse(text).faults

describe("lines that are read", () => {
  it("D15 a line is a name, scopes and a secret, or the hash of one; empty lines and comments say nothing", () => {
    const { entries, faults } = parse(
      `# who may what\n\ngrafana metrics ${a}\r\n\tshop  read,register   sha256:${hashOf(b).toUpperCase()}\n`
    )
    expect(faults).toEqual([])
    expect(entries.map(({ name, scopes, sha256, text }) => [name, scopes, text, sha256])).toEqual([
      ["grafana", ["metrics"], a, undefined],
      ["shop", ["read", "register"], undefined, hashOf(b)]
    ])
  })
  it("D15 every scope can be given", () =>
    expect(parse(`all ${scopes.join(",")} ${a}`).entries.map((entry) => entry.scopes)).toEqual([scopes]))
  it("D15 the secret of an SSP is the one of its name that has the scope ssp", () => {
    const { entries } = parse(`ssp-1 ssp,read ${a}\nssp-2 read ${b}`)
    expect(["ssp-1", "ssp-2", "ssp-3"].map((name) => secretOfSsp(entries, name))).toEqual([a, undefined, undefined])
  })
})

const refused: ReadonlyArray<readonly [what: string, text: string, fault: RegExp]> = [
  ["nothing", "# nothing\n", /^it has 0 entries/],
  [
    "too many",
    Array.from({ length: 1001 }, (_, n) => `n${n} read ${a}${n}`).join("\n"),
    /^it has 1001 entries; must be 1 to 1000/
  ],
  ["a name twice", `one read ${a}\none admin ${b}`, /^line 2 \(one\) has the name of line 1 \(one\)$/],
  ["a secret twice", `one read ${a}\ntwo admin ${a}`, /^line 2 \(two\) has the secret of line 1 \(one\)$/],
  [
    "a secret and its hash",
    `one read ${a}\ntwo admin sha256:${hashOf(a)}`,
    /^line 2 \(two\) has the secret of line 1 \(one\)$/
  ],
  [
    "an unknown scope",
    `one raed,admin ${a}`,
    /^line 1 \(one\) has a scope that does not exist, did you mean read\? \(scopes are ingest, read/
  ],
  ["a scope twice", `one read,read ${a}`, /^line 1 \(one\) has a scope twice$/],
  ["an empty scope", `one read, ${a}`, /^line 1 \(one\) has a scope that does not exist/],
  ["a short secret", "one read aaaaaaaaaaaaaaa", /^line 1 has a secret of fewer than 16 characters$/],
  ["a secret that no header carries", `one read ${a}é`, /^line 1 has a secret that is not visible ASCII/],
  ["half a hash", "one read sha256:abcdef0123456789", /^line 1 has a hash that is not 64/],
  ["an SSP that is only known by hash", `one ssp sha256:${hashOf(a)}`, /^line 1 \(one\) has the scope ssp and a hash/],
  ["a name that is taken", `default read ${a}`, /^line 1 \(default\) has a name that is taken$/],
  ["a name that is none", `.one read ${a}`, /^line 1 has a name that is not/],
  ["two fields", `one ${a}`, /^line 1 has 2 fields and not three$/],
  ["four fields", `one read ${a} more`, /^line 1 has 4 fields and not three$/]
]

describe("lines that are refused", () => {
  for (const [what, text, fault] of refused) {
    it(`D15 ${what}`, () => {
      expect(faults(text)).toEqual([expect.stringMatching(fault)])
      expect(faults(text).join()).not.toMatch(/aaaa|bbbb/)
    })
  }
  it("D15 every fault at once", () => expect(faults(`one raed short\n.x read ${a}\ntwo read ${b} x`)).toHaveLength(4))
  it("D15 no order of the fields shows the secret", () => {
    for (const secret of ["s3cr3t", "s3cr3t-of-some-length", "s3cr3tread", "s3cr3t".repeat(30)]) {
      for (const fields of [
        ["one", "read", secret],
        ["one", secret, "read"],
        ["read", "one", secret],
        ["read", secret, "one"],
        [secret, "one", "read"],
        [secret, "read", "one"],
        ["one", "read", "x", secret],
        ["one", `read:${secret}`],
        [`one=${secret}`, "read", "x"]
      ]) {
        expect(faults(fields.join(" ")).join(), fields.join(" ")).not.toContain("s3cr3t")
      }
    }
  })
  it("D15 a start names the setting, the line and what is allowed, and not the value", () => {
    const found: Array<string> = []
    Settings.readAll(
      { knob },
      { env: { SVC_AUTH_SECRETS: `one raed ${a}` }, readText: () => ({ fault: "ENOENT" }) },
      found
    )
    expect(found).toEqual([
      expect.stringMatching(
        /^SVC_AUTH_SECRETS is a value that is not shown in which line 1 \(one\) has a scope .*; must be lines of `<name>/
      )
    ])
    expect(found.join()).not.toContain(a)
  })
})
