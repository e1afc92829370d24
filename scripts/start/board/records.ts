/**
 * The board's own records, and how an edit of a visitor changes them. A map stands where an application has a database.
 *
 * An edit is a list of changes as `/ingest` takes them; a change carries its whole record, so that sending it again does
 * no harm.
 */
import { Schema } from "effect"
import type { Change } from "../data.ts"
import type { Visitor } from "./views.ts"

const text = (most: number) => Schema.Trim.pipe(Schema.minLength(1), Schema.maxLength(most))

/** What a page may ask to be done. */
export const Edit = Schema.Union(
  Schema.Struct({ kind: Schema.Literal("post"), title: text(120) }),
  Schema.Struct({ kind: Schema.Literal("vote"), post: Schema.String }),
  /** `about` is the id of a post, or of a comment on one. */
  Schema.Struct({ kind: Schema.Literal("comment"), about: Schema.String, text: text(300) }),
  Schema.Struct({ kind: Schema.Literal("remove"), post: Schema.String })
)
export type Edit = typeof Edit.Type

interface Post {
  readonly title: string
  readonly author: string
  readonly votes: number
}

interface Comment {
  readonly about: string
  readonly author: string
  readonly text: string
  /** Grows from comment to comment. */
  readonly at: number
}

const mostRecords = 2000

/** There at the beginning. */
export const begun: ReadonlyArray<readonly [title: string, votes: number, comments: ReadonlyArray<string>]> = [
  ["Open this page in a second window", 8, ["and vote: both windows reorder", "no reload, no polling"]],
  ["Kill an SSP while you watch", 7, ["its views move to the other one"]],
  ["Go offline, edit elsewhere, come back", 5, ["what was missed arrives as deltas"]],
  ["Where do the rows come from?", 4, ["from named views: scripts/start/board/views.ts"]],
  ["Is the secret on this page?", 3, ["no: the page has a token for its views"]],
  ["What is the counter above?", 2, ["a view with GROUP ALL"]],
  ["Page two is a view of its own", 1, []]
]

export class Records {
  readonly #posts = new Map<string, Post>()
  readonly #comments = new Map<string, Comment>()
  #count = 0

  /** What is there before anyone comes. */
  filling(): ReadonlyArray<Change> {
    return begun.flatMap(([title, votes, comments]) => {
      const post = this.#post({ title, author: "the house", votes })
      return [post, ...comments.map((said) => this.#comment(post.id, said, "the house"))]
    })
  }

  /** Takes an edit; the changes that it makes, or in words why it cannot be. */
  take(edit: Edit, { name }: Visitor): ReadonlyArray<Change> | string {
    const isMore = edit.kind === "post" || edit.kind === "comment"
    if (isMore && this.#posts.size + this.#comments.size >= mostRecords) return "the board is full"
    if (edit.kind === "post") return [this.#post({ title: edit.title, author: name, votes: 0 })]
    if (edit.kind === "comment") {
      const { about } = edit
      // A reply is about a comment that is about a post; further down nothing is shown.
      const isShown = this.#posts.has(about) || this.#posts.has(this.#comments.get(about)?.about ?? "")
      return isShown ? [this.#comment(about, edit.text, name)] : "what you comment on is gone"
    }
    const post = this.#posts.get(edit.post)
    if (post === undefined) return "the post is gone"
    return edit.kind === "vote" ? [this.#post({ ...post, votes: post.votes + 1 }, edit.post)] : this.#remove(edit.post)
  }

  #post(record: Post, id = `post:${++this.#count}`): Change {
    const op = this.#posts.has(id) ? "UPDATE" : "CREATE"
    this.#posts.set(id, record)
    return { table: "post", op, id, record: { ...record } }
  }

  #comment(about: string, said: string, author: string): Change {
    const at = ++this.#count
    const record = { about, author, text: said, at }
    this.#comments.set(`comment:${at}`, record)
    return { table: "comment", op: "CREATE", id: `comment:${at}`, record }
  }

  /** A post with what was said about it, and about that. */
  #remove(post: string): ReadonlyArray<Change> {
    this.#posts.delete(post)
    const changes: Array<Change> = [{ table: "post", op: "DELETE", id: post, record: {} }]
    const gone = new Set([post])
    for (const [id, { about }] of this.#comments) {
      if (!gone.has(about)) continue
      gone.add(id)
      this.#comments.delete(id)
      changes.push({ table: "comment", op: "DELETE", id, record: {} })
    }
    return changes
  }
}
