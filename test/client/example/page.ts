/** A page that shows a view without any library. */
import { connect } from "../../../src/client.ts"

interface Post {
  readonly id: string
  readonly title: string
}

/** Shows the newest posts until `stop` is called. */
export const showPosts = (show: (line: string) => void) => {
  const live = connect({ url: "http://live.test", token: async () => "a token for the view" })
  const posts = live.follow<Post>("incantation:posts")
  posts.subscribe(() => show(`${posts.status}: ${posts.rows.map(({ title }) => title).join(", ")}`))
  return { stop: () => live.close() }
}
