/** What a reader is told of rows that a view leaves out (D72), at either server. */
import { expect } from "vitest"
import { create, registration } from "../data/registration.ts"
import { secret, until } from "../processes/Door.ts"
import { type Answer, bodyOf, request } from "./http.ts"
import { eventsOf, follow } from "./manyStream.ts"

const mark = "qzxvkw"
const params = { me: "me" }
const views = {
  filter: "SELECT id, n FROM pay WHERE n + 1 > 0 AND string::lowercase(owner) = $me",
  sub: "SELECT id, (SELECT VALUE math::sum(n + 1) FROM pay GROUP ALL) AS total FROM pay WHERE owner = $me",
  group: "SELECT owner, math::sum(n + 1) AS s FROM pay GROUP BY owner",
  cast: "SELECT id, <datetime> n AS at FROM pay"
}

/** `readers`: bearers of secrets with the scope read alone. */
export const unseenRowsAreNotTold = async (
  url: string,
  post: (path: string, body: unknown) => Promise<Answer>,
  readers: ReadonlyArray<string>
): Promise<void> => {
  await post("/ingest", [create("pay:1", { n: 1, owner: "me" }), create("pay:2", { n: mark, owner: "boss" })])
  for (const [id, surql] of Object.entries(views)) await post("/view/register", registration(id, surql, { params }))
  const token = async (view: string): Promise<string> =>
    String(bodyOf(await post("/view/token", { views: [view] }))["token"])
  const get = (path: string, bearer: string) => request(url, { path, token: bearer })
  const own = new RegExp(`${mark}|pay:2`)
  const lacks = (answer: Answer): void => {
    expect([answer.status, bodyOf(answer)["errors"]]).toEqual([
      200,
      [
        {
          id: "",
          reason: expect.stringMatching(/Cannot perform addition with '…' and '…'|Could not cast into `datetime`/)
        }
      ]
    ])
    expect(answer.text).not.toMatch(own)
  }
  for (const id of Object.keys(views)) {
    // The same again: what one reader was told is not told to another.
    for (let n = 0; n < 2; n++) {
      expect((await get(`/view/${id}`, secret)).text).toMatch(own)
      expect((await get(`/debug/view/${id}`, secret)).text).toMatch(own)
      lacks(await get(`/view/${id}`, await token(id)))
      lacks(await get(`/view/${id}?errors=kinds`, secret))
      for (const reader of readers) {
        lacks(await get(`/view/${id}`, reader))
        lacks(await get(`/debug/view/${id}`, reader))
      }
    }
    for (const format of ["rows", "tree", "flat"])
      for (const bearer of [await token(id), secret]) {
        const many = await follow(url, { views: [{ view: id }], format }, bearer)
        await until("a snapshot", () => eventsOf(many).length > 1)
        expect(eventsOf(many)[1]?.data["errors"]).toEqual([{ id: "", reason: expect.stringContaining("…") }])
        expect(many.text).not.toMatch(own)
      }
  }
}
