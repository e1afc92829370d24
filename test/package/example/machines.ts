/**
 * The life of an SSP as the scheduler sees it, property-tested: whatever happens in whatever order, no event goes to
 * who cannot take it.
 *
 * The tables are what runs, so what holds for every walk through them holds for the service.
 */
import { FastCheck as fc } from "effect"
import * as Member from "surreal-live-sidecar/core/cluster/member"

const events = Object.keys(Member.table.Absent) as ReadonlyArray<Member.MemberEvent>

export const property = fc.property(fc.array(fc.constantFrom(...events), { maxLength: 50 }), (walk) => {
  let member: Member.Member = "Absent"
  for (const event of walk) {
    const { emit, refused, state } = Member.next(member, event)
    // A replay begins for who has its data and is sent what it missed.
    if (emit.includes("replay") && !Member.receives(state)) return false
    if (refused && state !== member) return false
    member = state
  }
  return true
})
