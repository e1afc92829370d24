/**
 * Which hosts may hear the secret and which are never called (D15), in every way an address can be written.
 *
 * The table is `test/hostile/attacks/addresses.ts`.
 */
import { Either } from "effect"
import { describe, expect, it } from "vitest"
import * as Hosts from "../../../src/core/access/hosts.ts"
import { forbiddenUrls, inside, names, never, oddUrls, outside } from "../../hostile/attacks/addresses.ts"

describe("D15 hosts", () => {
  it("D15 places of addresses", () => {
    expect(never.map(Hosts.placeOf)).toEqual(never.map(() => "never"))
    expect(inside.map(Hosts.placeOf)).toEqual(inside.map(() => "inside"))
    expect(outside.map(Hosts.placeOf)).toEqual(outside.map(() => "outside"))
    expect(names.map(Hosts.placeOf)).toEqual(names.map(() => undefined))
  })
  const refused = (
    url: string,
    list?: ReadonlyArray<string>,
    resolved: ReadonlyArray<string> = []
  ): string | undefined =>
    Either.match(Hosts.checkUrl(url, list, resolved), { onLeft: (why) => why, onRight: () => undefined })
  it("D15 link-local and metadata addresses are never registered, however they are written, listed or not", () => {
    for (const url of forbiddenUrls) {
      expect(refused(url), url).toMatch(/never called/)
      expect(refused(url, [Hosts.hostOf(url)]), url).toMatch(/never called/)
    }
    expect(refused("http://rebound.example", undefined, ["10.0.0.1", "169.254.169.254"])).toMatch(/never called/)
  })
  it("D15 with a list, only hosts on it", () => {
    const list = Hosts.parseList("a.example, *.b.example 10.0.0.1,[::1]")
    expect(list).toEqual(["a.example", "*.b.example", "10.0.0.1", "::1"])
    for (const url of [
      "http://a.example:1",
      "https://A.Example/x",
      "http://x.b.example",
      "http://10.0.0.1",
      "http://[::1]:5"
    ])
      expect(refused(url, list), url).toBeUndefined()
    for (const url of [
      "http://b.example",
      "http://xb.example",
      "http://a.example.evil",
      "http://10.0.0.2",
      "http://127.0.0.1"
    ])
      expect(refused(url, list), url).toMatch(/SVC_SCHEDULER_SSP_URL_ALLOW/)
    expect(["", ",", "http://a", "a/b", "*"].map(Hosts.parseList)).toEqual([
      undefined,
      undefined,
      undefined,
      undefined,
      undefined
    ])
  })
  it("D15 the secret goes inside, to names that stand for inside only, and to listed hosts", () => {
    const hears = (url: string, resolved: ReadonlyArray<string> = [], list?: ReadonlyArray<string>): boolean =>
      Hosts.mayReceiveSecret(url, list, resolved)
    expect([
      hears("http://127.0.0.1:1"),
      hears("http://[::1]"),
      hears("http://10.1.1.1"),
      hears("http://ssp", ["10.0.0.1", "fd12::1"]),
      hears("http://ssp.example", ["8.8.8.8"], ["ssp.example"])
    ]).toEqual([true, true, true, true, true])
    expect([
      hears("http://8.8.8.8"),
      hears("http://ssp"),
      hears("http://ssp", ["8.8.8.8"]),
      hears("http://ssp", ["10.0.0.1", "8.8.8.8"]),
      hears("http://8.8.8.8", ["10.0.0.1"])
    ]).toEqual([false, false, false, false, false])
  })
  it("D15 an address keeps its path and loses its slash; a text with more than an address is refused", () => {
    expect(Hosts.checkUrl("http://a.example:8080/ssp/", undefined, [])).toEqual(
      Either.right("http://a.example:8080/ssp")
    )
    for (const url of oddUrls) expect(refused(url), url).toMatch(/must be an http/)
  })
})
