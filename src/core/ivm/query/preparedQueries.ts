/**
 * Queries lifted and judged once: what a view or a subquery becomes as a shape, or why it is refused or run whole.
 *
 * Why kept by syntax tree: many views differ only in their parameters, and a subquery is the same for every row around
 * it.
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
  /** Some graph step looks up the edges of a record. */
  readonly readsEdges: boolean
}

export class PreparedQueries {
  private readonly subqueries = new WeakMap<Select, LiftedResults | Declined>()
  private readonly views = new WeakMap<Select, LiftedView | Refused>()
  /** Of each shape: the texts of its children's shapes that only one of them has, and which. */
  private readonly children = new WeakMap<Shape, ReadonlyMap<string, number>>()

  /** The query of a view. */
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

  /** A subquery whose results are to be maintained. */
  subquery(query: Select): LiftedResults | Declined {
    const known = this.subqueries.get(query)
    if (known !== undefined) return known
    const lifted = this.liftedShape(query, true)
    const shape = plan(lifted.select, lifted.list)
    const result = "reason" in shape ? shape : { ...lifted, shape }
    this.subqueries.set(query, result)
    return result
  }

  /** Which of a shape's children the results of this other shape are; undefined where several are like that. */
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

  /** Lifts a query; a subquery behind IN becomes a list where views can be filed by it. */
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

  /**
   * The text of a subquery whose values can be followed row by row: it depends on nothing around it and on no other
   * record, and cannot fail.
   */
  private listText(query: Select): string | undefined {
    const lifted = this.subquery(query)
    if ("reason" in lifted || lifted.correlated) return undefined
    const { groups, only, reaches, splitting, total } = lifted.shape
    return query.value && total && !only && !reaches && groups === undefined && splitting === undefined
      ? lifted.text
      : undefined
  }
}
