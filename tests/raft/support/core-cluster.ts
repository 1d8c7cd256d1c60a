import { RaftCore, type Work } from '../../../raft/core.ts';
import {
  checkedLimits,
  type Configuration,
  type Entry,
  type MemberId,
  type Message,
  type RaftLimits,
  type StorageWrite,
  type StoredState,
} from '../../../raft/index.ts';
import { afterWrite, EMPTY_DISK } from './disk.ts';
import { Invariants } from './invariants.ts';
import { SeededRandom } from './random.ts';

interface Member {
  readonly id: MemberId;
  core: RaftCore;
  disk: StoredState;
  write: { readonly id: number; readonly batch: StorageWrite } | null;
  /** The test completes writes itself. */
  held: boolean;
  applied: number;
  /** What was applied, as `index@term text`. */
  items: string[];
  reads: { key: number; index: number | null }[];
  running: boolean;
}

export interface CoreClusterOptions {
  readonly limits?: Partial<RaftLimits>;
  readonly configuration?: Partial<Configuration>;
  readonly disks?: Readonly<Record<MemberId, StoredState>>;
  readonly seed?: number;
}

/** Cores over a wire that the test delivers, drops, doubles and reorders by hand. Checks the invariants at each step. */
export class CoreCluster {
  readonly members = new Map<MemberId, Member>();
  readonly invariants = new Invariants();
  readonly limits: RaftLimits;
  /** Sent and not yet delivered. */
  wire: Message[] = [];
  /** Every message ever sent. */
  sent: Message[] = [];
  /** What happened, as text. */
  trace: string[] = [];
  readonly #cut = new Set<string>();
  readonly #configuration: Configuration;
  readonly #random: SeededRandom;

  constructor(ids: readonly MemberId[], options: CoreClusterOptions = {}) {
    this.limits = checkedLimits({ heartbeatMs: 100, electionTimeoutMs: 1_000, ...options.limits });
    this.#configuration = {
      voters: ids,
      outgoing: [],
      learners: [],
      learnersNext: [],
      ...options.configuration,
    };
    this.#random = new SeededRandom(options.seed ?? 1);
    for (const id of ids) this.boot(id, options.disks?.[id] ?? EMPTY_DISK);
  }

  of(id: MemberId): Member {
    const member = this.members.get(id);
    if (member === undefined) throw new Error(`no member ${id}`);
    return member;
  }

  core(id: MemberId): RaftCore {
    return this.of(id).core;
  }

  /** Starts a member from what its disk holds. */
  boot(id: MemberId, disk: StoredState): void {
    const { limits } = this;
    const random = new SeededRandom(this.#random.nextUint32());
    const core = new RaftCore({ id, configuration: this.#configuration, stored: disk, limits, random });
    const state = restored(disk);
    this.members.set(id, { id, core, disk, write: null, held: false, ...state, reads: [], running: true });
    this.invariants.restarted(id);
  }

  /** The process ends; a write under way is lost. */
  crash(id: MemberId): void {
    const member = this.of(id);
    member.running = false;
    member.write = null;
  }

  restart(id: MemberId, disk = this.of(id).disk): void {
    const { held } = this.of(id);
    this.boot(id, disk);
    this.of(id).held = held;
  }

  cut(a: MemberId, b: MemberId): void {
    this.#cut.add(`${a}${b}`).add(`${b}${a}`);
  }

  isolate(id: MemberId): void {
    for (const other of this.members.keys()) if (other !== id) this.cut(id, other);
  }

  heal(): void {
    this.#cut.clear();
  }

  /** Runs one input on a member and carries out the work that follows. */
  act<T>(id: MemberId, input: (core: RaftCore) => T): T | undefined {
    const member = this.of(id);
    if (!member.running) return undefined;
    const answer = input(member.core);
    this.#pump(member);
    return answer;
  }

  tick(id: MemberId, ms: number): void {
    this.act(id, (core) => core.tick(ms));
  }

  /** Lets a member's election time run out, and no other's. */
  timeout(id: MemberId): void {
    this.act(id, (core) => core.tick(core.nextTimeoutMs()));
  }

  propose(id: MemberId, ...texts: string[]): number {
    const encoder = new TextEncoder();
    return this.act(id, (core) => core.propose(texts.map((text) => encoder.encode(text)))) ?? 0;
  }

  /** Completes the write under way at a member; another may follow at once. */
  finishWrite(id: MemberId): void {
    const member = this.of(id);
    const { write } = member;
    if (write === null || !member.running) return;
    member.write = null;
    member.disk = afterWrite(member.disk, write.batch);
    this.act(id, (core) => core.written(write.id));
  }

  /** Gives a message to its receiver, whatever the wire and the links say. */
  deliver(message: Message): void {
    this.trace.push(describe(message));
    this.act(message.to, (core) => core.step(message));
  }

  /** Takes messages off the wire: answers those that match. */
  take(match: (message: Message) => boolean): Message[] {
    const taken = this.wire.filter(match);
    this.wire = this.wire.filter((message) => !match(message));
    return taken;
  }

  /** Delivers in order until the wire is quiet; what matches `lost` or crosses a cut link is dropped. */
  settle(lost: (message: Message) => boolean = () => false): void {
    for (let steps = 0; this.wire.length > 0; steps++) {
      if (steps > 20_000) throw new Error(`the wire does not fall silent: ${describe(this.wire[0]!)}`);
      const message = this.wire.shift()!;
      if (this.#cut.has(`${message.from}${message.to}`) || lost(message) || !this.of(message.to).running)
        continue;
      this.deliver(message);
    }
  }

  /** Time passes for all, in steps of a heartbeat, and messages flow. */
  run(ms: number, lost?: (message: Message) => boolean): void {
    for (let passed = 0; passed < ms; passed += 50) {
      for (const id of this.members.keys()) this.tick(id, 50);
      this.settle(lost);
    }
  }

  /** Makes a member leader by letting its time run out. */
  elect(id: MemberId): void {
    this.timeout(id);
    this.settle();
    if (this.core(id).role !== 'leader') throw new Error(`${id} was not elected: ${this.status(id)}`);
    this.run(this.limits.heartbeatMs);
  }

  status(id: MemberId): string {
    const { core, applied } = this.of(id);
    const { log } = core;
    return `${id} ${core.role} term=${core.term} vote=${core.votedFor ?? '-'} leader=${core.leaderId ?? '-'} last=${log.lastIndex}@${log.lastTerm} commit=${log.commitIndex} applied=${applied}`;
  }

  /** Terms of the log in memory, from its first entry. */
  terms(id: MemberId): number[] {
    const { log } = this.core(id);
    return log
      .slice(log.firstIndex, log.lastIndex, { maxEntries: Infinity, maxBytes: Infinity })
      .map((entry) => entry.term);
  }

  #watched(): Member[] {
    return [...this.members.values()];
  }

  #pump(member: Member): void {
    const work = member.core.takeWork();
    this.#restore(member, work);
    for (const message of work.messages) {
      this.invariants.sent(message);
      this.wire.push(message);
      this.sent.push(message);
    }
    if (work.write !== null) member.write = work.write;
    member.reads.push(...work.reads);
    this.invariants.check(member, this.#watched());
    this.#apply(member);
    if (!member.held && member.write !== null) this.finishWrite(member.id);
  }

  #restore(member: Member, work: Work): void {
    if (work.restore === null) return;
    member.applied = work.restore.meta.index;
    member.items = JSON.parse(new TextDecoder().decode(work.restore.data)) as string[];
    this.trace.push(`${member.id} restores ${work.restore.meta.index}@${work.restore.meta.term}`);
  }

  #apply(member: Member): void {
    for (const entry of member.core.committedEntries(member.applied, {
      maxEntries: Infinity,
      maxBytes: Infinity,
    })) {
      if (entry.index !== member.applied + 1)
        throw new Error(`${member.id} applies ${entry.index} after ${member.applied}`);
      member.applied = entry.index;
      member.items.push(itemOf(entry));
      this.trace.push(`${member.id} applies ${itemOf(entry)}`);
    }
  }

  /** Takes a snapshot of what a member has applied. */
  compact(id: MemberId): void {
    const { applied, items } = this.of(id);
    this.act(id, (core) => core.compact(applied, new TextEncoder().encode(JSON.stringify(items))));
  }
}

function itemOf(entry: Entry): string {
  const text = entry.kind === 'command' ? new TextDecoder().decode(entry.data) : entry.kind;
  return `${entry.index}@${entry.term} ${text}`;
}

function restored(disk: StoredState): { applied: number; items: string[] } {
  if (disk.snapshot === null) return { applied: 0, items: [] };
  return {
    applied: disk.snapshot.meta.index,
    items: JSON.parse(new TextDecoder().decode(disk.snapshot.data)) as string[],
  };
}

/** A disk whose log has these terms from index 1. */
export function diskOf(terms: readonly number[], term = terms.at(-1) ?? 0, commit = 0): StoredState {
  const entries = terms.map((each, at): Entry => {
    return { index: at + 1, term: each, kind: 'command', data: new TextEncoder().encode(`e${at + 1}`) };
  });
  return { hardState: { term, votedFor: null, commit }, snapshot: null, entries };
}

/** A message on one line. */
export function describe(message: Message): string {
  const head = `${message.from}->${message.to} ${message.type} term=${message.term}`;
  switch (message.type) {
    case 'preVote':
      return `${head} last=${message.lastIndex}@${message.lastTerm}`;
    case 'vote':
      return `${head} last=${message.lastIndex}@${message.lastTerm}${message.transfer ? ' transfer' : ''}`;
    case 'preVoteReply':
    case 'voteReply':
      return `${head} ${message.granted ? 'granted' : 'refused'}`;
    case 'append': {
      const entries = message.entries.map((entry) => `${entry.index}@${entry.term}`).join(' ');
      return `${head} prev=${message.prevIndex}@${message.prevTerm} commit=${message.commit} [${entries}]`;
    }
    case 'appendReply':
      if (message.success) return `${head} has=${message.index}`;
      return `${head} refused=${message.index} hint=${message.hintIndex}@${message.hintTerm}${message.lost ? ' lost' : ''}`;
    case 'heartbeat':
      return `${head} commit=${message.commit} round=${message.round}`;
    case 'heartbeatReply':
      return `${head} round=${message.round}`;
    case 'readIndex':
      return head;
    case 'readIndexReply':
      return `${head} index=${message.index ?? 'refused'}`;
    case 'snapshot':
      return `${head} ${message.snapshot.meta.index}@${message.snapshot.meta.term}`;
    case 'timeoutNow':
      return `${head} last=${message.lastIndex} round=${message.round}`;
  }
}
