/**
 * How much views may take, as the settings say it.
 */
export interface StreamLimits {
  /** Deltas kept per streamed view. */
  readonly streamBuffer: number
  /** Open streams at most. */
  readonly maxStreams: number
}

export interface ViewLimits extends StreamLimits {
  /** Registered views at most. */
  readonly maxViews: number
  /** How long a registration waits for the database, milliseconds. */
  readonly databaseWaitMs: number
  /** Changes that may wait for the store. */
  readonly maxPendingChanges: number
  /** How long saved state may lag behind, milliseconds. */
  readonly stateDebounceMs: number
  /** Deleted records that are remembered. */
  readonly maxTombstones: number
  /** Steps that one row of a view may take. */
  readonly rowSteps: number
  /** Steps that a run of a whole query may take. */
  readonly querySteps: number
  /** Bytes that the evaluation of one row, or of a run of a whole query, may make. */
  readonly queryBytes: number
  /** Bytes that rows of all views may keep of their own; 0 for a share of the heap. */
  readonly viewBytesTotal: number
  /** Bytes that one result in format `tree` may take when it is written out. */
  readonly resultBytes: number
}

/** The share of the heap that rows of views may keep: one part of so many. */
const heapShare = 3

/** What {@link ViewLimits.viewBytesTotal} comes to in a heap of so many bytes. */
export const viewBytesOf = ({ viewBytesTotal }: ViewLimits, heapBytes: number): number =>
  viewBytesTotal > 0 ? viewBytesTotal : Math.floor(heapBytes / heapShare)

/** The setting of {@link ViewLimits.resultBytes}. A text of the runtime ends at 512 Mi characters. */
export const resultBytes = { setting: "SVC_VIEW_RESULT_BYTES", value: 268_435_456, most: 402_653_184 } as const
