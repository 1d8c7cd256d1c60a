import type { Entry, HardState, Message, StorageWrite, StoredState } from '../../raft/index.ts';
import { hashString } from './random.ts';
import { ShadowLog } from './shadow-log.ts';

type Of<T extends Message['type']> = Extract<Message, { type: T }>;

/** What one member was seen to have on disk and in its log. */
interface Shadow {
  /** Everything issued to storage, synced or not: the log as the member itself sees it. */
  log: ShadowLog;
  /** What its storage has said is durable. */
  durableLog: ShadowLog;
  durable: HardState;
  /** The newest term it has handed to storage. */
  issuedTerm: number;
  appliedIndex: number;
}

const NEW_HARD_STATE: HardState = { term: 0, votedFor: null, commit: 0 };

/**
 * The safety properties of Raft, checked on what members write, send and apply, at the moment they do it
 * (paper, figure 3, and the rules that a message may rest on nothing volatile). Throws at the first breach.
 */
export class RaftChecks {
  readonly #shadows = new Map<string, Shadow>();
  /** `index term` → what is there and what comes before it: one payload for ever, and by induction log matching. */
  readonly #payloads = new Map<string, { hash: number; previousTerm: number | null }>();
  readonly #leaders = new Map<number, string>();
  /** `member term` → whom it voted for. */
  readonly #votes = new Map<string, string>();
  /** By index, from 1: what was committed there, and the term of the member that first applied it. */
  readonly #committed: { readonly term: number; readonly hash: number; readonly byTerm: number }[] = [];
  readonly #stateHashes = new Map<number, string>();
  /** The highest commit that any member has named, in a message or in what it wrote. */
  #namedCommit = 0;
  readonly #quorum: number;

  constructor(members: readonly string[]) {
    this.#quorum = Math.floor(members.length / 2) + 1;
    for (const id of members) {
      this.#shadows.set(id, {
        log: new ShadowLog(),
        durableLog: new ShadowLog(),
        durable: NEW_HARD_STATE,
        issuedTerm: 0,
        appliedIndex: 0,
      });
    }
  }

  /** Highest index that any member has applied. */
  get committedIndex(): number {
    return this.#committed.length;
  }

  /** How many terms had a leader. */
  get leaderCount(): number {
    return this.#leaders.size;
  }

  appliedIndex(id: string): number {
    return this.#shadow(id).appliedIndex;
  }

  loaded(id: string, state: StoredState): void {
    const shadow = this.#shadow(id);
    const { durable } = shadow;
    const { term, votedFor } = state.hardState;
    assert(term >= durable.term, `${id} came back in term ${term}, it had made ${durable.term} durable`);
    assert(
      term > durable.term || votedFor === durable.votedFor || durable.votedFor === null,
      `${id} came back having forgotten its vote for ${durable.votedFor} in term ${term}`,
    );
    for (const entry of state.entries) {
      const known = this.#payloads.get(`${entry.index} ${entry.term}`);
      assert(
        known === undefined || known.hash === hashEntry(entry),
        `${id} came back with another payload at (${entry.index}, t${entry.term})`,
      );
    }
    const log = ShadowLog.of(state);
    const { lastIndex } = shadow.durableLog;
    assert(
      log.lastIndex >= lastIndex || log.lastTerm > shadow.durableLog.lastTerm,
      `${id} came back with a log up to ${log.lastIndex}, it had made ${lastIndex} durable`,
    );
    shadow.durable = state.hardState;
    shadow.issuedTerm = term;
    shadow.log = log;
    shadow.durableLog = log.copy();
    shadow.appliedIndex = 0;
  }

  /** A batch is handed to storage. */
  issued(id: string, batch: StorageWrite): void {
    const shadow = this.#shadow(id);
    for (const entry of batch.entries) {
      const previousTerm = this.#termBefore(shadow.log, batch, entry.index);
      const hash = hashEntry(entry);
      const key = `${entry.index} ${entry.term}`;
      const known = this.#payloads.get(key);
      if (known === undefined) {
        this.#payloads.set(key, { hash, previousTerm });
      } else {
        assert(known.hash === hash, `${id} writes another payload at (${entry.index}, t${entry.term})`);
        assert(
          previousTerm === null || known.previousTerm === null || known.previousTerm === previousTerm,
          `${id}: (${entry.index}, t${entry.term}) follows t${previousTerm} here and t${known.previousTerm} elsewhere`,
        );
      }
    }
    shadow.log.apply(batch);
    shadow.issuedTerm = Math.max(shadow.issuedTerm, batch.hardState?.term ?? 0);
    this.#namedCommit = Math.max(this.#namedCommit, batch.hardState?.commit ?? 0);
  }

  /** Storage has told the member that the batch is synced. */
  durable(id: string, batch: StorageWrite): void {
    const shadow = this.#shadow(id);
    shadow.durableLog.apply(batch);
    if (batch.hardState !== null) {
      const { term, votedFor } = batch.hardState;
      assert(term >= shadow.durable.term, `${id} wrote term ${term} after ${shadow.durable.term}`);
      if (votedFor !== null) this.#voted(id, term, votedFor);
      shadow.durable = batch.hardState;
    }
  }

  sending(id: string, messages: readonly Message[]): void {
    const shadow = this.#shadow(id);
    for (const message of messages) {
      if (message.type === 'voteReply' && message.granted) this.#grants(id, shadow, message);
      else if (message.type === 'appendReply' && message.success) this.#acknowledges(id, shadow, message);
      else if (message.type === 'append' || message.type === 'heartbeat' || message.type === 'snapshot') {
        this.#leads(id, message.term, shadow);
        if (message.type !== 'snapshot') this.#commits(id, shadow, message);
      }
    }
  }

  /** Entries reach the state machine. `stateHash` is the state after the last of them. */
  applied(id: string, entries: readonly Entry[], stateHash: string): void {
    const shadow = this.#shadow(id);
    for (const entry of entries) {
      assert(
        entry.index === shadow.appliedIndex + 1,
        `${id} applies ${entry.index} after ${shadow.appliedIndex}`,
      );
      shadow.appliedIndex = entry.index;
      const hash = hashEntry(entry);
      const known = this.#committed[entry.index - 1];
      if (known === undefined) this.#commit(id, entry, hash, shadow.durable.term);
      else {
        assert(
          known.term === entry.term && known.hash === hash,
          `${id} applies (${entry.index}, t${entry.term}) where (${entry.index}, t${known.term}) was committed`,
        );
      }
    }
    this.#sameState(id, shadow.appliedIndex, stateHash);
  }

  /** A snapshot replaces the state. */
  restored(id: string, index: number, stateHash: string): void {
    const shadow = this.#shadow(id);
    assert(
      index >= shadow.appliedIndex,
      `${id} goes back from ${shadow.appliedIndex} to a snapshot at ${index}`,
    );
    assert(
      index <= this.#committed.length,
      `${id} installs a snapshot at ${index}, past all that was committed`,
    );
    shadow.appliedIndex = index;
    this.#sameState(id, index, stateHash);
  }

  #grants(id: string, { durable }: Shadow, { term, to }: Message): void {
    assert(
      durable.term > term || (durable.term === term && durable.votedFor === to),
      `${id} grants ${to} its vote in term ${term} and has not made it durable`,
    );
    this.#voted(id, term, to);
  }

  /** Only what is durable, and only where its log is the leader's. */
  #acknowledges(id: string, shadow: Shadow, { term, index }: Of<'appendReply'>): void {
    const { durable, durableLog, log } = shadow;
    assert(
      durableLog.lastIndex >= index && durable.term >= term,
      `${id} acknowledges ${index} in term ${term} and has made ${durableLog.lastIndex} durable in term ${durable.term}`,
    );
    const leader = this.#shadows.get(this.#leaders.get(term) ?? '');
    if (leader === undefined || leader.issuedTerm !== term) return;
    const [own, leaders] = [log.termAt(index), leader.log.termAt(index)];
    assert(
      own === null || leaders === null || own === leaders,
      `${id} acknowledges (${index}, t${own}) to the leader of term ${term}, which has (${index}, t${leaders})`,
    );
  }

  /** A commit that goes further than any before it was counted, and so ends at an entry of the leader's own term (paper, 5.4.2). */
  #commits(id: string, { log }: Shadow, message: Of<'append'> | Of<'heartbeat'>): void {
    const { type, commit, term } = message;
    if (commit <= this.#namedCommit) return;
    this.#namedCommit = commit;
    // A heartbeat's is cut to what its receiver has.
    if (type === 'heartbeat') return;
    const found = log.termAt(commit);
    assert(
      found === null || found === term,
      `${id} in term ${term} commits (${commit}, t${found}) by counting`,
    );
  }

  #commit(id: string, entry: Entry, hash: number, byTerm: number): void {
    assert(
      entry.index === this.#committed.length + 1,
      `${id} applies ${entry.index} before what comes before it`,
    );
    let holders = 0;
    for (const { durableLog } of this.#shadows.values()) {
      if (durableLog.holds(entry.index, entry.term)) holders++;
    }
    assert(
      holders >= this.#quorum,
      `${id} applies (${entry.index}, t${entry.term}), durable on ${holders} of the ${this.#quorum} it needs`,
    );
    const previous = this.#committed.at(-1)?.byTerm ?? 0;
    this.#committed.push({ term: entry.term, hash, byTerm: Math.max(byTerm, previous) });
  }

  #sameState(id: string, index: number, stateHash: string): void {
    const known = this.#stateHashes.get(index);
    if (known === undefined) this.#stateHashes.set(index, stateHash);
    else assert(known === stateHash, `${id} has state ${stateHash} at ${index}, another member had ${known}`);
  }

  #voted(id: string, term: number, candidate: string): void {
    const key = `${id} ${term}`;
    const before = this.#votes.get(key);
    assert(
      before === undefined || before === candidate,
      `${id} votes for ${before} and ${candidate} in term ${term}`,
    );
    this.#votes.set(key, candidate);
  }

  #leads(id: string, term: number, shadow: Shadow): void {
    const known = this.#leaders.get(term);
    if (known !== undefined) {
      assert(known === id, `${known} and ${id} both lead term ${term}`);
      return;
    }
    const votes = [...this.#shadows.keys()].filter((voter) => this.#votes.get(`${voter} ${term}`) === id);
    assert(
      votes.length >= this.#quorum,
      `${id} leads term ${term} by the votes of ${votes.join(', ') || 'nobody'}, it needs ${this.#quorum}`,
    );
    this.#leaders.set(term, id);
    // Leader completeness: everything committed in an earlier term is in its log. By log matching the last is enough.
    let last = this.#committed.length;
    while (last > 0 && (this.#committed[last - 1]?.byTerm ?? 0) >= term) last--;
    const committed = this.#committed[last - 1];
    assert(
      committed === undefined || shadow.log.holds(last, committed.term),
      `${id} leads term ${term} without the committed (${last}, t${committed?.term})`,
    );
  }

  #termBefore(log: ShadowLog, batch: StorageWrite, index: number): number | null {
    const first = batch.entries[0]?.index ?? index;
    if (index > first) return batch.entries[index - first - 1]?.term ?? null;
    if (batch.snapshot !== null && batch.snapshot.meta.index === index - 1) return batch.snapshot.meta.term;
    return log.termAt(index - 1);
  }

  #shadow(id: string): Shadow {
    const shadow = this.#shadows.get(id);
    if (shadow === undefined) throw new Error(`no member ${id}`);
    return shadow;
  }
}

function assert(holds: boolean, message: string): void {
  if (!holds) throw new Error(`unsafe: ${message}`);
}

function hashEntry(entry: Entry): number {
  let hash = hashString(entry.kind, entry.data.length);
  for (const byte of entry.data) hash = Math.imul(hash ^ byte, 0x01000193);
  return hash | 0;
}
