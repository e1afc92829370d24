/**
 * Queries lifted and planned once: the shape of a view or a subquery, or why it is refused or recomputed.
 *
 * Why cached by syntax tree: many views differ only in their parameters, and a subquery is the same for every parent
 * row.
 */
import { analyze } from "../../surql/syntax/analyze.ts"
import type { Select } from "../../surql/syntax/ast.ts"
import { type LiftedOnce, liftOnce } from "./lift.ts"
import { type Declined, plan, type Shape } from "./shape.ts"

export interface Refused {
  readonly reason: string
  readonly at: number
}

/** A subquery whose results are maintained. */
interface LiftedResults extends LiftedOnce {
  readonly shape: Shape
}

interface LiftedView extends LiftedOnce {
  /** A graph step of the query looks up the edges of a record. */
  readonly readsEdges: boolean
}

export class PreparedQueries {
  private readonly subqueries = new WeakMap<Select, LiftedResults | Declined>()
  private readonly views = new WeakMap<Select, LiftedView | Refused>()
  /** For each shape: positions of its children by the text of the child's shape, if only one has that text. */
  private readonly children = new WeakMap<Shape, ReadonlyMap<string, number>>()

  /** The lifted query of a view, or why it is refused. */
  view(select: Select): LiftedView | Refused {
    const known = this.views.get(select)
    if (known !== undefined) return known
    const {
      graph,
      nonDeterministic: [volatile]
    } = analyze(select)
    const view =
      volatile === undefined
        ? { ...this.liftedShape(select, false), readsEdges: graph }
        : {
            reason: `${volatile.name} gives another answer each time and cannot be part of a live view`,
            at: volatile.at
          }
    this.views.set(select, view)
    return view
  }

  /** A lifted subquery for maintained results, or why its results cannot be maintained. */
  subquery(query: Select): LiftedResults | Declined {
    const known = this.subqueries.get(query)
    if (known !== undefined) return known
    const lifted = this.liftedShape(query, true)
    const shape = plan(lifted.select, lifted.list)
    const result = "reason" in shape ? shape : { ...lifted, shape }
    this.subqueries.set(query, result)
    return result
  }

  /** Position of the child with this shape among a shape's children; undefined if several have it. */
  childAt(shape: Shape, child: Shape): number | undefined {
    let known = this.children.get(shape)
    if (known === undefined) {
      const texts = shape.children.map(({ query }) => {
        const lifted = this.subquery(query)
        return "reason" in lifted ? undefined : lifted.shape.text
      })
      known = new Map(
        texts.flatMap((text, i) =>
          text === undefined || texts.indexOf(text) !== texts.lastIndexOf(text) ? [] : [[text, i]]
        )
      )
      this.children.set(shape, known)
    }
    return known.get(child.text)
  }

  /** Lifts a query; a subquery behind IN becomes a list if views can be filed by its values. */
  private liftedShape(select: Select, inside: boolean): LiftedOnce {
    const lifted = liftOnce(select, inside, (query) => this.listText(query))
    if (lifted.list === undefined) return lifted
    const shape = plan(lifted.select, lifted.list)
    const filed =
      !("reason" in shape) &&
      shape.access?.member?.kind === "in" &&
      shape.access.member.lists.includes(lifted.list.name)
    return filed ? lifted : liftOnce(select, inside, () => undefined)
  }

  /** Text of a subquery that can be a list: it depends on nothing outside and on no other record, and cannot fail. */
  private listText(query: Select): string | undefined {
    const lifted = this.subquery(query)
    if ("reason" in lifted || lifted.correlated) return undefined
    const { groups, only, reaches, splitting, total } = lifted.shape
    return query.value && total && !only && !reaches && groups === undefined && splitting === undefined
      ? lifted.text
      : undefined
  }
}
