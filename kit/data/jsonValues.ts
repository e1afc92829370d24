/** Values of JSON with integers at and around the ends of 53 and 64 bits, and texts that look like them. */
import { FastCheck as fc } from "effect"

export const most = 9223372036854775807n
export const least = -9223372036854775808n

const around = (at: bigint) => fc.bigInt({ min: at - 3n, max: at + 3n })
const integers = fc
  .oneof(
    fc.bigInt({ min: least, max: most }),
    ...[0n, 2n ** 53n, -(2n ** 53n)].map(around),
    fc.bigInt({ min: most - 3n, max: most }),
    fc.bigInt({ min: least, max: least + 3n })
  )
  .map((n) => (Number.isSafeInteger(Number(n)) ? Number(n) : n))
const floats = fc
  .oneof(
    fc.double({ noNaN: true, noDefaultInfinity: true }),
    fc.integer({ min: 1, max: 2000 }).map((n) => 2 ** 53 + 2 * n),
    fc.constantFrom(2 ** 63, -(2 ** 63), 1e20, 1e21, 1e300, 0.1, 987654321987654321)
  )
  .map((n) => (n === 0 ? 0 : n))
const names = fc.oneof(
  fc.string(),
  fc.constantFrom("__proto__", "constructor", "toJSON", "1", "01", "a b", '"', "\\", "\\u0001", "12345678901234567")
)
const texts = fc.oneof(names, fc.stringMatching(/^[-\d":,[\]{}\\e.]{0,40}$/))
const { value } = fc.letrec((tie) => ({
  value: fc.oneof(
    { maxDepth: 4 },
    fc.oneof(integers, integers, floats, texts, fc.constantFrom(null, true, false)),
    fc.array(tie("value"), { maxLength: 4 }),
    fc.dictionary(names, tie("value"), { maxKeys: 4 }).map((object) =>
      // Names such as `__proto__` are the object's own.
      Object.entries(object).reduce(
        (out, [name, value]) =>
          Object.defineProperty(out, name, { value, enumerable: true, configurable: true, writable: true }),
        {}
      )
    )
  )
}))

/** Any value of JSON. */
export const jsonValues: fc.Arbitrary<unknown> = value

/** As text that tells a bigint from a number and 2^53 from its neighbours. */
export const told = (value: unknown): string =>
  JSON.stringify(value, (_, inner: unknown) =>
    typeof inner === "bigint"
      ? ["bigint", String(inner)]
      : typeof inner === "number" && !Number.isSafeInteger(inner)
        ? ["float", String(inner)]
        : inner
  )
