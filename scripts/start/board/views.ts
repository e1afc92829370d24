/**
 * What pages of the board may ask for: a page of posts with what was said about them, and figures over all.
 *
 * An application imports `defineViews` from "surreal-live-sidecar/views".
 */
import { Schema } from "effect"
import { defineViews, type ViewsOf } from "../../../src/views.ts"
import { postsPerPage } from "./paging.ts"

/** As the board's server knows who is there. */
export interface Visitor {
  readonly id: string
  readonly name: string
}

const said = { id: Schema.String, author: Schema.String, text: Schema.String, at: Schema.Number }
const Reply = Schema.Struct(said)
const Comment = Schema.Struct({ ...said, replies: Schema.Array(Reply) })
const Post = Schema.Struct({
  id: Schema.String,
  title: Schema.String,
  author: Schema.String,
  votes: Schema.Number,
  comments: Schema.Array(Comment)
})

export const views = defineViews({
  posts: {
    params: Schema.Struct({ page: Schema.Int.pipe(Schema.between(0, 1000)) }),
    row: Post,
    // Anyone who is known may read all; `undefined` instead of a query would refuse the visitor.
    query: ({ page }, _visitor: Visitor) => ({
      surql: `
        SELECT id, title, author, votes,
          (SELECT id, author, text, at,
            (SELECT id, author, text, at FROM comment WHERE about = $parent.id ORDER BY at) AS replies
            FROM comment WHERE about = $parent.id ORDER BY at) AS comments
        FROM post ORDER BY votes DESC, id LIMIT $size START $from`,
      params: { size: postsPerPage, from: page * postsPerPage }
    })
  },
  totals: {
    params: Schema.Struct({}),
    row: Schema.Struct({ posts: Schema.Number, votes: Schema.Number }),
    query: () => ({ surql: "SELECT count() AS posts, math::sum(votes) AS votes FROM post GROUP ALL" })
  }
})

/** For the page, which takes the type and no code. */
export type Views = ViewsOf<typeof views>
