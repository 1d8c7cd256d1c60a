import type { Assignment, Reports, ShardReport } from '../../placement/index.ts';
import type { OffsetReport } from '../broker-services.ts';
import type { AssignmentRow, BrokerRow } from '../state/index.ts';

interface ShardOffsets {
  generation: number;
  leaderOffset: number;
  followers: Readonly<Record<string, number>>;
  /** Whose progress is followed: the move's destination, of that registration. */
  destination: string | null;
  destinationOffset: number;
  progressAtMs: number;
}

/**
 * Offsets as the leaders of shards reported them to this Raft leader; they never enter the log. What an earlier
 * leader was told is not known here, so every move's stall is counted from the day this leader began.
 */
export class ReportBook {
  readonly #shards = new Map<string, ShardOffsets>();
  readonly #beganAtMs: number;

  /** `beganAtMs`: cluster time at which this leader was established. */
  constructor(beganAtMs: number) {
    this.#beganAtMs = beganAtMs;
  }

  /**
   * Takes in a report that names the row's generation. Answers whether a planner's step could rest on it: the
   * destination came within `fenceMaxLagRecords`, or ceased to be.
   */
  note(
    report: OffsetReport,
    row: AssignmentRow,
    options: { destination: BrokerRow | undefined; nowMs: number; fenceMaxLagRecords: number },
  ): boolean {
    const known = this.#shards.get(report.shard);
    const to = row.move?.to;
    const destination =
      to === undefined
        ? null
        : `${to}#${options.destination?.incarnation ?? 0}@${row.move?.startedAtMs ?? 0}`;
    const offset = to === undefined ? 0 : (report.followers[to] ?? 0);
    const same = known !== undefined && known.destination === destination;
    const rose = !same || offset > known.destinationOffset;
    this.#shards.set(report.shard, {
      generation: report.generation,
      leaderOffset: report.leaderOffset,
      followers: report.followers,
      destination,
      destinationOffset: same ? Math.max(offset, known.destinationOffset) : offset,
      progressAtMs: rose ? options.nowMs : known.progressAtMs,
    });
    if (to === undefined) return false;
    const wasClose =
      known?.generation === report.generation &&
      known.leaderOffset - (known.followers[to] ?? 0) <= options.fenceMaxLagRecords;
    return wasClose !== report.leaderOffset - offset <= options.fenceMaxLagRecords;
  }

  forget(shard: string): void {
    this.#shards.delete(shard);
  }

  /** The planner's view of the shards with a move in flight. */
  view(
    moving: Iterable<AssignmentRow>,
    brokers: ReadonlyMap<string, BrokerRow>,
    leasedUntilMs: ReadonlyMap<string, number>,
  ): Reports {
    const shards = new Map<string, ShardReport>();
    for (const row of moving) {
      if (row.move !== null) shards.set(row.shard, this.#report(row, brokers.get(row.move.to)));
    }
    return { shards, leasedUntilMs };
  }

  /** Last reported offsets of a shard, for people; `null`: none since this leader began. */
  offsets(shard: string): Pick<ShardOffsets, 'generation' | 'leaderOffset' | 'followers'> | null {
    return this.#shards.get(shard) ?? null;
  }

  #report(row: AssignmentRow, destination: BrokerRow | undefined): ShardReport {
    const known = this.#shards.get(row.shard);
    const to = row.move?.to ?? '';
    const current = known !== undefined && known.generation === row.generation ? known : null;
    const reported = current?.followers[to];
    return {
      generation: row.generation,
      lagRecords:
        current === null || reported === undefined ? null : Math.max(0, current.leaderOffset - reported),
      drained: row.drained,
      // To a process that the fence did not know nothing is cut over.
      destinationRenewed: destination !== undefined && destination.incarnation !== row.stagedIncarnation,
      progressAtMs: Math.max(
        this.#beganAtMs,
        known?.destination?.startsWith(`${to}#`) === true ? known.progressAtMs : 0,
      ),
    };
  }
}

/** Whether two sets of copies are the same, in any order. */
export function sameCopies(a: readonly string[], b: Assignment['inSync']): boolean {
  return a.length === b.length && a.every((id) => b.includes(id));
}
