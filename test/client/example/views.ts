/** Named views of an application, and their route. */
import { Schema } from "effect"
import { defineViews, type ViewsOf } from "../../../src/views.ts"

interface User {
  readonly id: string
  readonly channels: ReadonlyArray<string>
}

const users = new Map<string, User>([["session=ann", { id: "ann", channels: ["news"] }]])

export const views = defineViews({
  posts: {
    params: Schema.Struct({ channel: Schema.String }),
    row: Schema.Struct({ id: Schema.String, title: Schema.String }),
    query: ({ channel }, user: User) =>
      user.channels.includes(channel)
        ? { surql: "SELECT id, title FROM post WHERE channel = $channel", params: { channel } }
        : undefined
  }
})
/** For the page: `connect<Views>({ views: "/views" })`, then `live.follow("posts", { channel: "news" })`. */
export type Views = ViewsOf<typeof views>

/** The route `/views` of the application. */
export const route = views.handler({
  url: "http://127.0.0.1:8667",
  secret: "choose-one",
  publicUrl: "http://live.test",
  authenticate: (request) => users.get(request.headers.get("cookie") ?? "")
})
