/**
 * Names and ids as any store keeps them, byte for byte.
 *
 * In one place, because all stores have the same limits: UTF-8 has no half of a surrogate pair, and some drivers end a
 * text at U+0000 when they read it.
 */

const unkeepable = /[\u0000\ud800-\udfff]/

/**
 * The text as it is stored: unchanged, or as JSON if UTF-8 or a store that ends at U+0000 would lose part of it. No id
 * begins like JSON text.
 */
export const storedText = (text: string): string =>
  (unkeepable.test(text) && /\u0000|\p{Cs}/u.test(text)) || text.startsWith('"') ? JSON.stringify(text) : text

export const originalText = (text: string): string => (text.startsWith('"') ? (JSON.parse(text) as string) : text)
