/** A map of the last `most` entries set: a further one removes the entry set longest ago. */
export class Recent<K, V> extends Map<K, V> {
  constructor(private readonly most: number) {
    super()
  }

  override set(key: K, value: V): this {
    // Deleted first, so that the entry becomes the last.
    this.delete(key)
    super.set(key, value)
    if (this.size > this.most)
      for (const oldest of this.keys()) {
        this.delete(oldest)
        break
      }
    return this
  }
}
