/** What a token opens on a stream of others, and that one which has ended opens nothing again (D49), at either server. */
import { request as node } from "node:http"
import { expect } from "vitest"
import { secret } from "../processes/Door.ts"
import { expectError } from "./contract.ts"
import { type Answer, bodyOf } from "./http.ts"
import { brief, follow, heard, streamOf } from "./manyStream.ts"

type Post = (path: string, body: unknown, bearer?: string) => Promise<Answer>

/** `POST /stream` whose body comes in two parts, with `between` done before the second. */
const slowly = (url: string, token: string, view: string, between: () => Promise<unknown>): Promise<string> =>
  new Promise((done, failed) => {
    const body = JSON.stringify({ views: [{ view }] })
    const sent = node(new URL("/stream", url), {
      method: "POST",
      agent: false,
      headers: {
        authorization: `Bearer ${token}`,
        "content-type": "application/json",
        "content-length": String(body.length)
      }
    })
    let text = ""
    sent.on("response", (response) => {
      response.on("error", () => {})
      response.setEncoding("utf8").on("data", (piece: string) => {
        text += piece
        if (!text.includes("refused") && !text.includes("snapshot") && !text.includes("code")) return
        done(text)
        sent.destroy()
      })
    })
    sent.on("error", failed)
    sent.write(body.slice(0, 5))
    setTimeout(() => void between().then(() => sent.end(body.slice(5)), failed), 100)
  })

/** Views `a` and `b` are registered. `others`: bearers of secrets without the scope read. */
export const endedGrantsOpenNothing = async (url: string, post: Post, others: ReadonlyArray<string>): Promise<void> => {
  let subjects = 0
  const tokenFor = async (view: string, more: object = {}): Promise<string> =>
    String(bodyOf(await post("/view/token", { views: [view], subject: `s${++subjects}`, ...more }))["token"])
  const ends = {
    revoked: async (token: string, subject: string) => {
      await post("/view/token/revoke", { subject })
      return token
    },
    unauthorized: async (token: string) => token
  }
  for (const [reason, end] of Object.entries(ends)) {
    const first = await tokenFor("a", reason === "revoked" ? {} : { ttl_ms: 700 })
    const subject = `s${subjects}`
    const [ofAnother, own] = [await tokenFor("b"), await tokenFor("a")]
    const many = await follow(url, { views: [{ view: "a" }] }, first)
    await heard(many, ["- open", "0 snapshot"])
    const path = `/stream/${streamOf(many)}`
    await end(first, subject)
    const told = ["- open", "0 snapshot", `0 end${reason}`]
    await heard(many, told)
    // What is asked with the token that has ended, or with a secret for something else, changes nothing.
    for (const bearer of [first, ...others])
      for (const body of [{ add: [{ view: "a" }] }, { add: [{ view: "b", token: ofAnother }] }, { drop: [0] }])
        expect([401, 403]).toContain((await post(path, body, bearer)).status)
    // Each addition is judged by the token that asks for it.
    const refused: ReadonlyArray<readonly [object, string]> = [
      [{ view: "a" }, ofAnother],
      [{ view: "a", token: first }, ofAnother],
      [{ view: "a", token: ofAnother }, own],
      [{ view: "b" }, own],
      [{ view: "a", token: first }, secret]
    ]
    for (const [asked, bearer] of refused) {
      told.push(`${told.length - 2} refusedUNAUTHORIZED`)
      expect((await post(path, { add: [asked] }, bearer)).status).toBe(200)
      await heard(many, told)
    }
    // A place that has ended is not renewed.
    expect((await post(path, { renew: [[0, own]] }, own)).status).toBe(200)
    expect(brief(many)).toEqual(told)
    const opened: ReadonlyArray<readonly [object, string]> = [
      [{ view: "a" }, own],
      [{ view: "b", token: ofAnother }, own],
      [{ view: "a" }, secret]
    ]
    for (const [asked, bearer] of opened) {
      told.push(`${told.length - 2} snapshot`)
      expect((await post(path, { add: [asked] }, bearer)).status).toBe(200)
      await heard(many, told)
    }
    expectError(await post(path, { renew: [[6, first]] }, own), 401, "UNAUTHORIZED")
  }
  const late = await tokenFor("a")
  const text = await slowly(url, late, "a", () => post("/view/token/revoke", { subject: `s${subjects}` }))
  expect(text).not.toContain("snapshot")
  expect(text).toContain("UNAUTHORIZED")
}
