/**
 * COLLATE and NUMERIC, their functions, and slugs: every character of Unicode and thousands of random texts, against
 * the real database.
 *
 * Why so: the database transliterates all scripts by a table of its own, which ours was recorded from; whether the two
 * agree is a question that can be asked about all characters, so it is.
 */
import { describe, expect, it } from "vitest"
import type { Rng } from "../../../../../kit/data/random.ts"
import { rounds, seeded } from "../../../../../kit/data/random.ts"
import { compareTerm } from "../../../../../src/core/surql/evaluate/select/sorting.ts"
import { compareStrings } from "../../../../../src/core/surql/values/order.ts"
import { collationOf, slug } from "../../../../../src/core/surql/values/transliterate.ts"
import { embedded } from "../../embedded.ts"

const db = embedded()

const ask = async <A>(expression: string, items: ReadonlyArray<unknown>): Promise<ReadonlyArray<A>> =>
  (await db.query<[Array<A>]>(`RETURN $items.map(|$x| ${expression})`, { items }))[0]

const forms = {
  sort_lexical: compareTerm({ collate: true, descending: false, numeric: false }),
  sort_natural: compareTerm({ collate: false, descending: false, numeric: true }),
  sort_natural_lexical: compareTerm({ collate: true, descending: false, numeric: true })
}

/** Characters of a stretch of Unicode; the byte order mark is lost on the way to the database. */
const stretch = (from: number, length: number): ReadonlyArray<string> =>
  Array.from({ length }, (_, i) => from + i)
    .filter((p) => (p < 0xd800 || p > 0xdfff) && p !== 0xfeff)
    .map((p) => String.fromCodePoint(p))

describe("transliteration", () => {
  // Behind this nothing has a word, neither here nor there; one stretch in sixteen is enough to see that.
  const stretches = Array.from({ length: 0x110000 >> 12 }, (_, i) => i << 12).filter(
    (from) => from < 0x24000 || from % 0x10000 === 0
  )

  it("every character of Unicode sorts where the database sorts it", { timeout: 120_000 }, async () => {
    for (const from of stretches) {
      // Each between two texts of ASCII that only what it sorts as lies between, so that another word would show.
      const texts = stretch(Math.max(from, 0x80), 4096).flatMap((c) => [
        `${c}m`,
        ...(collationOf(c.codePointAt(0)!) === undefined
          ? []
          : ["l", "n"].map((end) => collationOf(c.codePointAt(0)!)! + end))
      ])
      const [theirs] = await ask<ReadonlyArray<string>>("array::sort_lexical($x)", [texts])
      const mine = texts.slice().sort(forms.sort_lexical)
      expect(
        mine.find((text, i) => text !== theirs![i]),
        `from ${from.toString(16)}`
      ).toBeUndefined()
    }
  })

  it("every character of Unicode has the slug that the database gives it", { timeout: 120_000 }, async () => {
    for (const from of stretches) {
      const texts = stretch(from, 4096).map((c) => `x${c}x`)
      const theirs = await ask<string>("string::slug($x)", texts)
      expect(texts.filter((text, i) => slug(text) !== theirs[i])).toEqual([])
    }
  })

  it.each([
    ["李雷", "li-lei"],
    ["Straße ß", "strasse-ss"],
    ["snake_case", "snake_case"],
    ["--a  b--", "a-b"],
    ["中 国x", "zhong-guo-x"],
    ["한국어", "hangugeo"],
    ["🦄☣", "unicorn-biohazard"],
    ["", ""],
    ["_", "_"]
  ])("the slug of %s is %s", async (text, want) => {
    expect(slug(text)).toBe(want)
    expect(await ask("string::slug($x)", [text])).toEqual([want])
  })
})

const pieces: ReadonlyArray<(random: Rng) => string> = [
  (random) => random.pick(["a", "b", "A", "B", "z", "Z", "é", "É", "ß", "æ", "ø"]),
  (random) => random.pick(["0", "1", "2", "9", "00", "10", "½", "٣", "²", "१"]),
  (random) => random.pick(["-", "_", " ", "!", "~", "{", "€", "…", "😀", "🦄", "\u0301", "\u0345"]),
  (random) => random.pick(["李", "雷", "明", "Ж", "ж", "ა", "한", "국", "ア", "あ", "א", "ع", "ไ", "𐍈", "𝒜", "Ꭿ"]),
  (random) =>
    String.fromCodePoint(
      random.pick([
        random.below(0x800) + 0x80,
        random.below(0x4000) + 0xa000 - 0x4000,
        random.below(0x2000) + 0x10000,
        random.below(0xd00) + 0x2000
      ])
    ),
  (random) => String(random.below(200)),
  (random) => "18446744073709551616".slice(0, 18 + random.below(3)) + random.pick(["", "5", "7"])
]

const textOf = (random: Rng): string =>
  Array.from({ length: random.below(5) }, () => random.pick(pieces)(random)).join("")

describe("COLLATE and NUMERIC", () => {
  seeded(
    "sort random texts as the database does",
    "test/core/surql/evaluate/sorting.test.ts",
    async (random) => {
      let differing = 0
      for (let round = 0; round < rounds(10); round++) {
        // Texts that share beginnings, because that is where a comparison gets difficult.
        const roots = Array.from({ length: 40 }, () => textOf(random))
        const lists = Array.from({ length: 100 }, () => {
          const root = random.pick(roots)
          return Array.from({ length: 12 }, () => (random.chance(0.7) ? root : "") + textOf(random))
        })
        for (const [form, by] of Object.entries(forms)) {
          const theirs = await ask<ReadonlyArray<string>>(`array::${form}($x)`, lists)
          for (const [i, list] of lists.entries()) expect(list.slice().sort(by), form).toEqual(theirs[i])
        }
        differing += lists.filter(
          (list) => String(list.slice().sort(forms.sort_lexical)) !== String(list.slice().sort(compareStrings))
        ).length
      }
      expect(differing).toBeGreaterThan(rounds(10) * 50)
    },
    60_000
  )

  it("李雷 and Nancy stand between J and O", () => {
    expect(["Oslo", "李雷", "Nancy", "Jim", "Li", "émile", "Eve", "Zoë"].sort(forms.sort_lexical)).toEqual([
      "émile",
      "Eve",
      "Jim",
      "Li",
      "李雷",
      "Nancy",
      "Oslo",
      "Zoë"
    ])
  })

  it("numbers that are one for 64 bits are equal, as in the database", async () => {
    const texts = ["18446744073709551616", "36893488147419103232"]
    expect(forms.sort_natural(texts[0]!, texts[1]!)).toBe(0)
    expect(await ask("array::sort_natural($x)", [texts, texts.slice().reverse()])).toEqual([
      texts,
      texts.slice().reverse()
    ])
  })
})
