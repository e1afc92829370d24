/** A node's front asked without a server: one whole answer to one request. */
import type { Answer, Front } from "../../src/ports/Front.ts"

export interface FrontAsk {
  readonly method: string
  /** Path and query. */
  readonly url: string
  readonly headers: { readonly [name: string]: string | undefined }
  readonly body?: string
}

const textOf = (pieces: ReadonlyArray<Uint8Array>): string => Buffer.concat(pieces).toString("utf8")

/** Fails where the front leaves the request, or opens an answer that goes on. */
export const askFront = (
  { serve }: Pick<typeof Front.Service, "serve">,
  { body = "", headers, method, url }: FrontAsk
): Promise<Answer> =>
  new Promise((done, failed) => {
    const goesOn = (): never => {
      throw new Error(`${method} ${url} is answered by more than one piece`)
    }
    const send = (answer: Parameters<Parameters<typeof serve>[1]["send"]>[0]): void =>
      done("body" in answer ? answer : { ...answer, body: textOf(answer.pieces) })
    const isServed = serve(
      { method, url, headers, address: "127.0.0.1", text: (_, given) => given(body) },
      { send, fail: send, stream: goesOn, flow: goesOn, whenGone: () => {} }
    )
    if (!isServed) failed(new Error(`${method} ${url} is no route of the contract`))
  })
