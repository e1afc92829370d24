/**
 * Faults as a developer reads them: a code to decide by and a sentence to understand.
 *
 * Codes of the service are passed on unchanged; codes of the client are listed here.
 */

/** Why a view is not live. `message` is a sentence for the developer. */
export interface Fault {
  /** A code of the service (`VIEW_NOT_FOUND`, `UNAUTHORIZED`, `OVERLOADED`, ...), or one of {@link ClientCode}. */
  readonly code: string
  readonly message: string
}

/**
 * `UNREACHABLE` the service does not answer; `CUT` the stream broke off; `SILENT` nothing came, not even a heartbeat;
 * `TOO_OLD` the server does not know streams of several views, or is no server of views; `NOT_A_STREAM` the answer is
 * no event stream; `TOKEN` the application's function gave no token, or failed; `MISFIT` a message of the server makes
 * no sense; `ENDED` the service ended the view's stream; `CLOSED` the application closed the client.
 */
export type ClientCode =
  | "UNREACHABLE"
  | "CUT"
  | "SILENT"
  | "TOO_OLD"
  | "NOT_A_STREAM"
  | "TOKEN"
  | "MISFIT"
  | "ENDED"
  | "CLOSED"

/** A fault of the client itself. */
export const fault = (code: ClientCode, message: string): Fault => ({ code, message })

/** Message of an exception of any type. */
export const textOf = (error: unknown): string => (error instanceof Error ? error.message : String(error))

/** How to handle an error answer. */
export interface Refusal {
  readonly fault: Fault
  readonly status: number
  /** From `Retry-After`; undefined without that header. */
  readonly retryAfterMs: number | undefined
}

/** Reads an error answer: the service's own error body, or just the status if something else answered. */
export const refusalOf = async (address: string, answer: Response): Promise<Refusal> => {
  const text = await answer.text().catch(() => "")
  const seconds = Number(answer.headers.get("retry-after") ?? Number.NaN)
  const retryAfterMs = seconds >= 0 ? seconds * 1000 : undefined
  const status = answer.status
  try {
    const { code, message } = JSON.parse(text) as Partial<Fault>
    if (typeof code === "string" && typeof message === "string")
      return { fault: { code, message }, status, retryAfterMs }
  } catch {
    // Not the service's error body: its status is reported below.
  }
  return { fault: fault("NOT_A_STREAM", `${address} answers ${status}, not as the service does`), status, retryAfterMs }
}
