/**
 * Pieces of bytes as one: bodies and streams come in pieces, and text or a socket wants the whole.
 */

/** One copy, and none of a single piece. */
export const joined = (pieces: ReadonlyArray<Uint8Array>): Uint8Array => {
  if (pieces.length === 1) return pieces[0]!
  const whole = new Uint8Array(pieces.reduce((sum, { length }) => sum + length, 0))
  let at = 0
  for (const piece of pieces) {
    whole.set(piece, at)
    at += piece.length
  }
  return whole
}
