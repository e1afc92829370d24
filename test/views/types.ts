/** A declaration as an application writes it; `handler.test.ts` and the compiler look at its types. */
import { Schema } from "effect"
import { connect } from "../../src/client.ts"
import { defineViews, type ViewsOf } from "../../src/views.ts"

export interface User {
  readonly id: string
  readonly channels: ReadonlyArray<string>
}

export const views = defineViews({
  posts: {
    params: Schema.Struct({ channel: Schema.String, since: Schema.optional(Schema.Date) }),
    row: Schema.Struct({ id: Schema.String, title: Schema.String }),
    query: ({ channel, since }, user: User) =>
      user.channels.includes(channel)
        ? {
            surql: "SELECT id, title FROM post WHERE channel = $channel AND at >= $since",
            params: { channel, since: since?.toISOString() ?? null }
          }
        : undefined
  },
  numbered: {
    params: Schema.Struct({ n: Schema.BigInt }),
    query: ({ n }) => ({ surql: "SELECT id FROM post WHERE n = $n", params: { n } })
  },
  mine: {
    params: Schema.Struct({}),
    query: (_, user: User) => ({ surql: "SELECT * FROM post WHERE author = $me", params: { me: user.id } })
  }
})

/** What a page writes. Never called: the compiler is the test. */
export const page = () => {
  const live = connect<ViewsOf<typeof views>>({ views: "/views" })
  const posts = live.follow("posts", { channel: "a", since: "2026-01-01T00:00:00Z" })
  const title: string | undefined = posts.rows[0]?.title
  // @ts-expect-error The channel is a text.
  live.follow("posts", { channel: 1 })
  // @ts-expect-error No view has this name.
  live.follow("nothing", { channel: "a" })
  // @ts-expect-error The row has no such field.
  posts.rows[0]?.nothing
  const mine: unknown = live.follow("mine", {}).rows[0]
  return [title, mine]
}

/** As `rowTypes` writes them. */
interface Rows {
  readonly mine: { readonly id: `post:${string}`; readonly votes: number }
}

/** A page with types of rows that were written. */
export const typedPage = () => {
  const live = connect<ViewsOf<typeof views, Rows>>({ views: "/views" })
  const mine = live.follow("mine", {})
  const votes: number | undefined = mine.rows[0]?.votes
  // @ts-expect-error The row has no such field.
  mine.rows[0]?.nothing
  // Not among those that were written: as it is declared.
  const title: string | undefined = live.follow("posts", { channel: "a" }).rows[0]?.title
  return [votes, title]
}
