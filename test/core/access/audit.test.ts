/**
 * Audit lines as data (D53): a caller's text stays inside its field.
 *
 * The texts are what an attacker would choose: line ends of every kind, what hides or turns text around, and length.
 */
import { describe, expect, it } from "vitest"
import { annotationsOf } from "../../../src/core/access/audit.ts"

const entry = { operation: "view.register", object: "v", secret: "default", address: "127.0.0.1", outcome: "ok" }

describe("the fields of a line", () => {
  for (const [what, character, shown] of [
    ["a line feed", "\n", "\\u{a}"],
    ["a carriage return", "\r", "\\u{d}"],
    ["an escape", "\u001b", "\\u{1b}"],
    ["a next line", "\u0085", "\\u{85}"],
    ["a line separator", "\u2028", "\\u{2028}"],
    ["a right-to-left override", "\u202e", "\\u{202e}"],
    ["half a character", "\ud800", "\\u{d800}"],
    ["NUL", "\0", "\\u{0}"]
  ] as const) {
    it(`D53 ${what} in a view's id is shown, not obeyed`, () =>
      expect(annotationsOf({ ...entry, object: `a${character}b` })["object"]).toBe(`a${shown}b`))
  }
  it("D53 a long text is cut, and letters of every script stay", () => {
    expect(String(annotationsOf({ ...entry, object: "x".repeat(100_000) })["object"])).toHaveLength(201)
    expect(annotationsOf({ ...entry, object: "café 視図 ∀" })["object"]).toBe("café 視図 ∀")
  })
  it("D53 an IPv4 address looks the same on every socket", () => {
    expect(
      ["::ffff:10.1.2.3", "10.1.2.3", "fe80::1"].map((address) => annotationsOf({ ...entry, address })["address"])
    ).toEqual(["10.1.2.3", "10.1.2.3", "fe80::1"])
  })
})
