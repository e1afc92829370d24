/** A map of the entries that were set last: beyond `most` the one set longest ago goes. */
export class Recent<K, V> extends Map<K, V> {
  constructor(private readonly most: number) {
    super()
  }

  override set(key: K, value: V): this {
    // Set anew, an entry is the last again.
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
