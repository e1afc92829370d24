/**
 * JSON text and its values, with integers of 64 bits exact: beyond 2^53 they are `bigint` (D66).
 *
 * Why so: `JSON.parse` rounds such an integer and `JSON.stringify` refuses it. Nearly no text has one, so the native
 * parser and writer do the work; the exact ones here, several times as expensive, run only if one is found.
 */

/** A number of JSON text that is neither a 64-bit integer nor a float. */
export class NumberRefused extends Error {
  readonly reason: string
  constructor(
    /** Place of the number, as `[3].record.n`; empty for the text itself. */
    readonly path: string,
    digits: string
  ) {
    const shown = digits.length > 40 ? `${digits.slice(0, 40)}… (${digits.length} characters)` : digits
    const reason = `is ${shown}, which neither a 64-bit integer nor a float can hold`
    super(`${path === "" ? "the value" : path} ${reason}`)
    this.reason = reason
  }
}

/** The text or value nests too deeply, or a value contains itself. */
export class TooDeep extends Error {
  override readonly message = "nests deeper than can be read and written"
}

/** Levels of a body; the outermost object is level 1 (D17). */
export const maxDepth = 64

/** Levels allowed for texts of this service itself, or of a backend without a limit. */
const anyLevels = 1_000

const unsafe = 2 ** 53

/** -0 is written as 0 and read as 0. */
const isChangedNumber = (value: number): boolean =>
  value >= unsafe || value <= -unsafe || (value === 0 && 1 / value < 0)

/**
 * Whether a list or an object contains a number that the native parser and writer may change. Each body comes here, so
 * it recurses only into lists and objects: a call for each text and number would cost a tenth of the parse. Tests for
 * texts first, since most values are texts. Throws {@link TooDeep}.
 */
const holdsChanged = (value: object, left: number): boolean => {
  if (left === 0) throw new TooDeep()
  let found = false
  if (Array.isArray(value)) {
    for (let i = 0; i < value.length; i++) {
      const item: unknown = value[i]
      if (typeof item === "number") {
        if (isChangedNumber(item)) found = true
      } else if (typeof item === "object") {
        if (item !== null && holdsChanged(item, left - 1)) found = true
      } else if (typeof item === "bigint") found = true
    }
  } else
    for (const key in value) {
      const item = (value as { readonly [key: string]: unknown })[key]
      if (typeof item === "string") continue
      if (typeof item === "number") {
        if (isChangedNumber(item)) found = true
      } else if (typeof item === "object") {
        if (item !== null && holdsChanged(item, left - 1)) found = true
      } else if (typeof item === "bigint") found = true
    }
  return found
}

const isChanged = (value: unknown, left: number): boolean =>
  typeof value === "object"
    ? value !== null && holdsChanged(value, left)
    : typeof value === "number"
      ? isChangedNumber(value)
      : typeof value === "bigint"

/**
 * The 64-bit integer, or beyond that the float that equals it or is written with these digits; undefined otherwise.
 * JSON does not tell -0 from 0.
 */
const numberOf = (digits: string): number | bigint | undefined => {
  const near = Number(digits)
  if (near === 0) return 0
  if (!Number.isFinite(near)) return undefined
  if (Number.isSafeInteger(near) || /[.eE]/.test(digits)) return near
  const whole = BigInt(digits)
  if (BigInt.asIntN(64, whole) === whole) return whole
  return BigInt(near) === whole || String(near) === digits ? near : undefined
}

/** Reads text that is known to be JSON. */
class ExactReader {
  private at = 0
  /** Path of the value being read: keys and positions. */
  private readonly path: Array<string | number> = []

  constructor(private readonly text: string) {}

  value(): unknown {
    const first = this.next()
    if (first === "{") return this.object()
    if (first === "[") return this.list()
    if (first === '"') return this.string()
    const from = this.at
    while (this.at < this.text.length && !",]} \n\r\t".includes(this.text[this.at]!)) this.at++
    const word = this.text.slice(from, this.at)
    return first === "t" || first === "f" || first === "n" ? JSON.parse(word) : this.number(word)
  }

  /** Skips blanks; answers the next character. */
  private next(): string {
    while (" \n\r\t,:".includes(this.text[this.at]!)) this.at++
    return this.text[this.at]!
  }

  private number(digits: string): number | bigint {
    const number = numberOf(digits)
    if (number !== undefined) return number
    const steps = this.path.map((step, i) => (typeof step === "number" ? `[${step}]` : i === 0 ? step : `.${step}`))
    throw new NumberRefused(steps.join(""), digits)
  }

  private string(): string {
    const from = this.at
    let isPlain = true
    for (this.at++; this.text[this.at] !== '"'; this.at++)
      if (this.text[this.at] === "\\") {
        isPlain = false
        this.at++
      }
    this.at++
    return isPlain ? this.text.slice(from + 1, this.at - 1) : (JSON.parse(this.text.slice(from, this.at)) as string)
  }

  private list(): ReadonlyArray<unknown> {
    const items: Array<unknown> = []
    for (this.at++; this.next() !== "]"; ) {
      this.path.push(items.length)
      items.push(this.value())
      this.path.pop()
    }
    this.at++
    return items
  }

  private object(): object {
    const object: { [key: string]: unknown } = {}
    for (this.at++; this.next() !== "}"; ) {
      const key = this.string()
      this.path.push(key)
      const value = this.value()
      this.path.pop()
      // An assignment to this key would set the prototype.
      if (key === "__proto__")
        Object.defineProperty(object, key, { value, enumerable: true, configurable: true, writable: true })
      else object[key] = value
    }
    this.at++
    return object
  }
}

/**
 * As `JSON.parse`, with integers beyond 2^53 as `bigint`. An outermost array counts as no level. Throws `SyntaxError`,
 * {@link TooDeep} and {@link NumberRefused}.
 */
export const parse = (text: string, levels = anyLevels): unknown => {
  const value: unknown = JSON.parse(text)
  return isChanged(value, Array.isArray(value) ? levels + 1 : levels) ? new ExactReader(text).value() : value
}

/**
 * JSON of a value. A whole float beyond 2^53 is written as `9007199254740994.0`, so that it is read as a float again;
 * from 1e21 on the native form has an exponent.
 */
const written = (value: unknown): string | undefined => {
  if (typeof value === "bigint") return String(value)
  if (typeof value === "number" && Number.isInteger(value) && Math.abs(value) >= unsafe && Math.abs(value) < 1e21)
    return `${value}.0`
  if (typeof value !== "object" || value === null) return JSON.stringify(value)
  if (Array.isArray(value)) return `[${value.map((item) => written(item) ?? "null").join(",")}]`
  if (typeof (value as { readonly toJSON?: unknown }).toJSON === "function") return JSON.stringify(value)
  const fields = Object.entries(value).flatMap(([key, item]) => {
    const text = written(item)
    return text === undefined ? [] : [`${JSON.stringify(key)}:${text}`]
  })
  return `{${fields.join(",")}}`
}

/** As `JSON.stringify` of a JSON value; {@link parse} restores it. Throws {@link TooDeep}. */
export const write = (value: unknown): string => (isChanged(value, anyLevels) ? written(value)! : JSON.stringify(value))
