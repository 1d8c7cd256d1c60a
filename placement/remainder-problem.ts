import type { Scores } from './selection.ts';

/** `cost` of a pair that may not be picked. */
export const FORBIDDEN = 255;
/** The broker leads that many of the resource already: picking it moves nothing. */
export const KEEPS = 0;
/** A shard must move there, and some shard's copy there is in sync. */
export const HANDS_OVER = 1;
/** A shard must move there and be copied first, or is new. */
export const COPIES = 2;
/** As COPIES, but the broker is full: the shard has to wait for room. */
export const WAITS = 3;

export type RemainderScores = Pick<Scores, 'ranks'>;

/** Which brokers take each row's remainder: row `i` picks `take[i]` of its brokers, once each. */
export interface RemainderProblem {
  readonly rows: number;
  readonly brokers: number;
  /** By row, then broker: FORBIDDEN, KEEPS, HANDS_OVER, COPIES or WAITS. Rows that are alike may have one array: it is looked through once. */
  readonly costs: readonly Uint8Array[];
  readonly take: Int32Array;
  /** By broker: least and most picks in all. */
  readonly least: Int32Array;
  readonly most: Int32Array;
  /** By row: the order among equals; the higher is picked first, then the earlier broker. */
  readonly scores: (row: number) => RemainderScores;
}
