/** What an SSP has applied, said line by line on one request whose body goes on (`POST /ssp/applied`, D61). */
import { type ClientRequest, type IncomingMessage, request } from "node:http"

export class Words {
  isOver = false
  status = 0
  private readonly request: ClientRequest

  private constructor(url: string, bearer: string) {
    const headers = { authorization: `Bearer ${bearer}`, "content-type": "application/x-ndjson" }
    this.request = request(`${url}/ssp/applied`, { method: "POST", headers })
    this.request.on("error", () => {})
    this.request.on("close", () => {
      this.isOver = true
    })
  }

  static async open(url: string, bearer: string): Promise<Words> {
    const words = new Words(url, bearer)
    const answer = new Promise<IncomingMessage>((done) => words.request.on("response", done))
    words.write("\n")
    words.status = (await answer).statusCode!
    return words
  }

  write(text: string): void {
    this.request.write(text)
  }

  say(word: object): void {
    this.write(`${JSON.stringify(word)}\n`)
  }

  readonly close = (): void => void this.request.destroy()
}
