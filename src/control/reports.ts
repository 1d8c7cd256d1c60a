import {
  isNearEnough,
  type Assignment,
  type Policy,
  type Reports,
  type ShardReport,
} from '../../placement/index.ts';
import type { OffsetReport } from '../broker-services.ts';
import type { AssignmentRow, BrokerRow } from '../state/index.ts';

/** The least time over which the rate of a copy is measured, ms. */
const RATE_WINDOW_MS = 2_000;

/** How fast a destination's offset rises. */
interface Rate {
  /** Where the window that is under way began. */
  readonly fromMs: number;
  readonly fromOffset: number;
  /** Of the last whole window; `null`: there was none. */
  readonly perSecond: number | null;
}

interface ShardOffsets {
  generation: number;
  leaderOffset: number;
  followers: Readonly<Record<string, number>>;
  /** Whose progress is followed: the move's destination, of that registration. */
  destination: string | null;
  destinationOffset: number;
  progressAtMs: number;
  rate: Rate;
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
   * destination came near enough for the fence, or ceased to be.
   */
  note(
    report: OffsetReport,
    row: AssignmentRow,
    options: { destination: BrokerRow | undefined; nowMs: number; policy: Policy },
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
    const destinationOffset = same ? Math.max(offset, known.destinationOffset) : offset;
    const wasNear =
      to !== undefined && known?.generation === report.generation && isNear(known, to, options.policy);
    const now: ShardOffsets = {
      generation: report.generation,
      leaderOffset: report.leaderOffset,
      followers: report.followers,
      destination,
      destinationOffset,
      progressAtMs: rose ? options.nowMs : known.progressAtMs,
      rate: same
        ? measured(known.rate, destinationOffset, options.nowMs)
        : { fromMs: options.nowMs, fromOffset: offset, perSecond: null },
    };
    this.#shards.set(report.shard, now);
    return to !== undefined && wasNear !== isNear(now, to, options.policy);
  }

  forget(shard: string): void {
    this.#shards.delete(shard);
  }

  /** The planner's view of the shards with a move in flight. */
  view(
    moving: Iterable<AssignmentRow>,
    brokers: ReadonlyMap<string, BrokerRow>,
    silence: Omit<Reports, 'shards'>,
  ): Reports {
    const shards = new Map<string, ShardReport>();
    for (const row of moving) {
      if (row.move !== null) shards.set(row.shard, this.#report(row, brokers.get(row.move.to)));
    }
    return { shards, ...silence };
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
      copiedPerSecond: known?.destination?.startsWith(`${to}#`) === true ? known.rate.perSecond : null,
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

function measured(rate: Rate, offset: number, nowMs: number): Rate {
  const ms = nowMs - rate.fromMs;
  if (ms < RATE_WINDOW_MS) return rate;
  return { fromMs: nowMs, fromOffset: offset, perSecond: ((offset - rate.fromOffset) * 1_000) / ms };
}

function isNear({ leaderOffset, followers, rate }: ShardOffsets, to: string, policy: Policy): boolean {
  const lagRecords = Math.max(0, leaderOffset - (followers[to] ?? 0));
  return isNearEnough({ lagRecords, copiedPerSecond: rate.perSecond }, policy);
}

/** Whether two sets of copies are the same, in any order. */
export function sameCopies(a: readonly string[], b: Assignment['inSync']): boolean {
  return a.length === b.length && a.every((id) => b.includes(id));
}
