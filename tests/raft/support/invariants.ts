import type { RaftCore } from '../../../raft/core.ts';
import { committedIndex } from '../../../raft/quorum.ts';
import type { Entry, MemberId, Message, StoredState } from '../../../raft/index.ts';

export interface Watched {
  readonly id: MemberId;
  readonly core: RaftCore;
  readonly disk: StoredState;
}

function key(entry: Entry): string {
  return `${entry.kind} ${Buffer.from(entry.data).toString('latin1')}`;
}

function diskHolds(disk: StoredState, index: number, term: number): boolean {
  if ((disk.snapshot?.meta.index ?? 0) >= index) return true;
  const entry = disk.entries[index - (disk.snapshot?.meta.index ?? 0) - 1];
  return entry?.index === index && entry.term === term;
}

/** What may never happen, whatever the schedule (paper, figure 3). Throws at the first breach. */
export class Invariants {
  readonly #leaders = new Map<number, MemberId>();
  readonly #votes = new Map<string, MemberId>();
  readonly #payloads = new Map<string, string>();
  readonly #committed = new Map<number, { term: number; key: string }>();
  readonly #seenCommit = new Map<MemberId, number>();
  highestCommit = 0;

  sent(message: Message): void {
    if (message.type !== 'voteReply' || !message.granted) return;
    const ballot = `${message.from} in term ${message.term}`;
    const before = this.#votes.get(ballot);
    if (before !== undefined && before !== message.to)
      throw new Error(`two votes of ${ballot}: ${before} and ${message.to}`);
    this.#votes.set(ballot, message.to);
  }

  /** A restarted member knows its commit anew. */
  restarted(id: MemberId): void {
    this.#seenCommit.delete(id);
  }

  check(member: Watched, all: readonly Watched[]): void {
    const { core, id } = member;
    if (core.role === 'leader') this.#checkLeader(member);
    const { log } = core;
    const from = Math.max(this.#seenCommit.get(id) ?? 0, log.firstIndex - 1);
    if (log.commitIndex <= from) return;
    const entries = log.slice(from + 1, log.commitIndex, { maxEntries: Infinity, maxBytes: Infinity });
    for (const entry of entries) this.#checkCommitted(entry, member, all);
    this.#seenCommit.set(id, log.commitIndex);
    this.highestCommit = Math.max(this.highestCommit, log.commitIndex);
  }

  /** One payload for each (index, term), for ever. */
  checkLog({ core, id }: Watched): void {
    const { log } = core;
    for (const entry of log.slice(log.firstIndex, log.lastIndex, {
      maxEntries: Infinity,
      maxBytes: Infinity,
    })) {
      const place = `${entry.index}@${entry.term}`;
      const before = this.#payloads.get(place);
      if (before !== undefined && before !== key(entry))
        throw new Error(`${place} is "${before}" and at ${id} "${key(entry)}"`);
      this.#payloads.set(place, key(entry));
    }
  }

  /** Election safety and leader completeness. */
  #checkLeader({ core, id }: Watched): void {
    const before = this.#leaders.get(core.term);
    if (before === id) return;
    if (before !== undefined) throw new Error(`${before} and ${id} both lead term ${core.term}`);
    this.#leaders.set(core.term, id);
    for (const [index, committed] of this.#committed) {
      const term = core.log.termAt(index);
      if (index > core.log.lastIndex || (term !== null && term !== committed.term)) {
        throw new Error(`${id} leads term ${core.term} without committed entry ${index}@${committed.term}`);
      }
    }
  }

  /** State machine safety, and durability on a quorum before anyone calls it committed. */
  #checkCommitted(entry: Entry, member: Watched, all: readonly Watched[]): void {
    const before = this.#committed.get(entry.index);
    if (before !== undefined) {
      if (before.term !== entry.term || before.key !== key(entry)) {
        throw new Error(
          `${member.id} commits ${entry.index}@${entry.term}, before it was ${entry.index}@${before.term}`,
        );
      }
      return;
    }
    const holders = new Set(
      all.filter(({ disk }) => diskHolds(disk, entry.index, entry.term)).map(({ id }) => id),
    );
    const configuration = member.core.log.configurationAt(
      Math.max(entry.index, member.core.log.snapshotIndex),
    );
    if (committedIndex(configuration, (id) => (holders.has(id) ? 1 : 0)) < 1) {
      throw new Error(
        `${member.id} commits ${entry.index}@${entry.term}, on disk only at ${[...holders].join(' ')}`,
      );
    }
    this.#committed.set(entry.index, { term: entry.term, key: key(entry) });
  }
}
