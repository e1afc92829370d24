/**
 * The order of records by an ORDER BY whose terms each read one field: by the terms, then by record id.
 *
 * Indexes store the first value, the lead, beside each row; all other values are read from the record when it is
 * compared.
 */
import { compareRecords } from "../../surql/values/order.ts"
import { field, type Obj, type Value } from "../../surql/values/value.ts"
import type { RecordSlot } from "./recordSlot.ts"

/** A term of an ORDER BY that reads one field of the record. */
export interface OrderingTerm {
  readonly field: string
  readonly compare: (a: Value, b: Value) => number
}

/** How records are ordered: by the terms, equal ones by record id. */
export interface Ordering {
  /** Equal texts are the same order. */
  readonly text: string
  readonly terms: ReadonlyArray<OrderingTerm>
  /** The first term. */
  readonly lead: OrderingTerm | undefined
}

/** First ORDER BY value of a document; undefined if rows are ordered by record id alone. */
export const leadOf = ({ lead }: Ordering, doc: Obj): Value => (lead === undefined ? undefined : field(doc, lead.field))

/** Whether two states of one record, given with their leads, have the same place in the order. */
export const sameOrder = ({ lead, terms }: Ordering, a: Probe, b: Probe): boolean => {
  if (lead !== undefined && lead.compare(a.lead, b.lead) !== 0) return false
  for (let i = 1; i < terms.length; i++)
    if (terms[i]!.compare(field(a.doc, terms[i]!.field), field(b.doc, terms[i]!.field)) !== 0) return false
  return true
}

/** A state of a record to search for. */
export interface Probe {
  readonly lead: Value
  readonly doc: Obj
  readonly slot: RecordSlot
}

export const compareLeads = ({ lead }: Ordering, a: Value, b: Value): number =>
  lead === undefined ? 0 : lead.compare(a, b)

/**
 * Compares a row, by its lead and its current record, with a probe; negative: the row comes first. The probe may be an
 * earlier state of the same record.
 */
export const compareToProbe = (ordering: Ordering, otherLead: Value, other: RecordSlot, probe: Probe): number =>
  compareLeads(ordering, otherLead, probe.lead) || compareBehindLead(ordering, other, probe)

/** Whether every row with this lead comes after a place (without ORDER BY: whether this record does). */
export const isBehind = ({ lead: first }: Ordering, lead: Value, slot: RecordSlot, place: Probe): boolean =>
  (first === undefined ? compareRecords(slot.id, place.slot.id) : first.compare(lead, place.lead)) > 0

/** As {@link compareToProbe}, for equal leads. */
export const compareBehindLead = ({ terms }: Ordering, other: RecordSlot, { doc, slot }: Probe): number => {
  const otherDoc = other.doc!
  for (let i = 1; i < terms.length; i++) {
    const { compare, field: name } = terms[i]!
    const order = compare(field(otherDoc, name), field(doc, name))
    if (order !== 0) return order
  }
  return other === slot ? 0 : compareRecords(other.id, slot.id)
}
