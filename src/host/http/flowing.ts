/**
 * A long answer on a bare connection, by callback: streams of a scheduler's clients pass through here byte for byte,
 * and a fiber for each would cost many times as much.
 */
import type { Dispatcher } from "@effect/platform-node/Undici"
import type { Flow, Heard } from "../../ports/SspClient.ts"

export class FlowHandler implements Flow, Dispatcher.DispatchHandler {
  private controller: Dispatcher.DispatchController | undefined
  private isPaused = false
  private isOver = false

  constructor(private readonly heard: Heard) {}

  readonly pause = (): void => {
    this.isPaused = true
    this.controller?.pause()
  }

  readonly resume = (): void => {
    this.isPaused = false
    this.controller?.resume()
  }

  readonly close = (): void => {
    if (this.isOver) return
    this.isOver = true
    this.controller?.abort(new Error("closed"))
  }

  onRequestStart(controller: Dispatcher.DispatchController): void {
    this.controller = controller
    if (this.isOver) controller.abort(new Error("closed"))
  }

  onResponseStart(
    controller: Dispatcher.DispatchController,
    status: number,
    headers: { readonly [name: string]: string | string[] | undefined }
  ): void {
    // 102 and 103 announce an answer.
    if (status < 200 || this.isOver) return
    this.heard.head(status, headers)
    if (this.isPaused) controller.pause()
  }

  onResponseData(_: Dispatcher.DispatchController, chunk: Uint8Array): void {
    if (!this.isOver) this.heard.data(chunk)
  }

  onResponseEnd(): void {
    this.end(undefined)
  }

  onResponseError(_: unknown, error: Error): void {
    this.end(error)
  }

  private end(error: unknown): void {
    if (this.isOver) return
    this.isOver = true
    this.heard.end(error)
  }
}
