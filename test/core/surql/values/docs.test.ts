/** Documents of records: plain objects with all that was put in, whatever the fields are called. */
import { describe, expect, it } from "vitest"
import { docOf } from "../../../../src/core/surql/values/docs.ts"
import * as Ids from "../../../../src/core/surql/values/recordId.ts"

describe("the document of a record", () => {
  it("is a plain object with the fields in their order, but for the one left out", () => {
    const doc = docOf("post", { title: "a", _svc_rv: 3, n: 1, tags: ["x"] }, "_svc_rv")
    expect(Object.getPrototypeOf(doc)).toBe(Object.prototype)
    expect(Object.keys(doc)).toEqual(["title", "n", "tags"])
    expect(doc).toEqual({ title: "a", n: 1, tags: ["x"] })
  })

  it("keeps fields that are called like what objects inherit", () => {
    const content = JSON.parse('{"__proto__":1,"constructor":2,"toString":3}') as Record<string, number>
    const doc = docOf("post", content)
    expect(Object.keys(doc)).toEqual(["__proto__", "constructor", "toString"])
    expect(Object.getPrototypeOf(doc)).toBe(Object.prototype)
    expect(JSON.stringify(doc)).toBe(JSON.stringify(content))
  })

  it("is the same for the last of very many tables", () => {
    for (let n = 0; n < 1_100; n++)
      expect(docOf(`table${n}`, { n, a: 1, b: 2, c: 3, d: 4 })).toEqual({ n, a: 1, b: 2, c: 3, d: 4 })
  })

  it("refers to one record by one id, which is forgotten when it was long not named", () => {
    const refers = (n: number) =>
      docOf("post", { id: Ids.make("post", n), author: Ids.make("user", n % 3), tags: [Ids.make("tag", 1)] })
    const [first, second, same] = [refers(1), refers(2), refers(4)]
    expect(same["author"]).toBe(first["author"])
    expect(second["author"]).not.toBe(first["author"])
    expect([same["id"], same["author"]]).toEqual([Ids.make("post", 4), Ids.make("user", 1)])
    const one = Ids.sharedId(Ids.make("user", 1))
    for (let n = 0; n < 140_000; n++) Ids.sharedId(Ids.make("other", n))
    const again = Ids.make("user", 1)
    expect([Ids.sharedId(again) === again, again === one]).toEqual([true, false])
  })
})
