import type { Assignment, ClusterFile, Plan } from '../../placement/index.ts';
import { RpcFailure, until, type Cluster } from './cluster.ts';
import { RpcSocket } from './rpc-socket.ts';
import type { Watcher } from './watcher.ts';

/** Answers that wait for their other half. */
const MOST_KEPT = 16;

/** What a running cluster printed at one revision: its plan, and itself. */
export interface Moment {
  readonly revision: number;
  readonly plan: Plan;
  readonly file: ClusterFile;
}

interface Envelope {
  readonly revision: number;
  readonly term: number;
  readonly leaderId: string | null;
}

type Answer = Readonly<Record<string, unknown>>;

/**
 * Asks the leader of a quorum for its plan and a member for an export, with every change that is seen and whenever it is told
 * to, and keeps what is of one revision.
 */
export class PlanWitness {
  /** One a revision, in order, until they are taken. */
  #moments: Moment[] = [];
  readonly #watcher: Watcher;
  readonly #sockets: readonly RpcSocket[];
  readonly #plans = new Map<number, Plan>();
  readonly #files = new Map<number, ClusterFile>();
  #leader: number;
  #last: Moment | null = null;
  #turns = 0;
  #looking: Promise<number> | null = null;
  /** Looks that wait for the one under way. */
  #waiting = 0;
  #closed = false;

  private constructor(watcher: Watcher, sockets: readonly RpcSocket[], leader: number) {
    this.#watcher = watcher;
    this.#sockets = sockets;
    this.#leader = leader;
    watcher.onChange = () => this.#follow();
  }

  static async open(cluster: Cluster, watcher: Watcher): Promise<PlanWitness> {
    const sockets = await Promise.all(cluster.nodes.map((_, node) => RpcSocket.open(cluster.address(node))));
    return new PlanWitness(watcher, sockets, await cluster.leader());
  }

  close(): void {
    this.#closed = true;
    for (const socket of this.#sockets) socket.close();
  }

  /** Of the leader; rejects with an RpcFailure. */
  call(method: string, params: Answer): Promise<Answer> {
    return this.#call(this.#leader, method, params);
  }

  /** Looks once more. Answers whether the plan of that revision was seen, now or before. */
  async sees(revision: number): Promise<boolean> {
    await this.#lookAnew(() => this.#leader);
    return this.#moments.some((moment) => moment.revision === revision);
  }

  /** The first moment that is such, of those looked for from now on. The members take turns with its file. */
  async until(what: string, isSuch: (moment: Moment) => boolean): Promise<Moment> {
    return await until(what, async () => {
      for (;;) {
        const seen = this.#watcher.revision;
        const revision = await this.#lookAnew(() => this.#turns++ % this.#sockets.length);
        const moment = this.#last?.revision === revision ? this.#last : null;
        if (moment !== null && isSuch(moment)) return moment;
        if (this.#watcher.revision === seen) return null;
      }
    });
  }

  take(): Moment[] {
    return this.#moments.splice(0);
  }

  /**
   * Who reads a file takes it that each leader which is up has said so, and that what is fenced and copied has drained. The
   * file does not tell; the leader's plan is of the same cluster only where all of that is true.
   */
  isSaid({ revision, file }: Moment): boolean {
    const isUp = ({ lifecycle }: { lifecycle: string }): boolean => ['live', 'draining'].includes(lifecycle);
    const up = new Set(file.brokers.filter(isUp).map(({ id }) => id));
    const hasDrained = ({ shard, generation }: Assignment): boolean => {
      const known = this.#watcher.drained.get(shard);
      return known?.generation === generation && known.revision <= revision;
    };
    return file.assignments.every((row) => {
      if (row.state === 'active' || !up.has(row.leader)) return true;
      if (row.state === 'assigning' || row.move === null) return false;
      return !row.inSync.includes(row.move.to) || hasDrained(row);
    });
  }

  #follow(): void {
    // The leader has applied the most: what it prints is of the plan's revision more often than what others do.
    if (this.#looking === null && this.#waiting === 0 && !this.#closed) void this.#look(this.#leader);
  }

  /** What was asked before does not count. */
  async #lookAnew(member: () => number): Promise<number> {
    this.#waiting++;
    while (this.#looking !== null) await this.#looking;
    this.#waiting--;
    return this.#look(member());
  }

  /** Answers the revision of the plan; 0: there was none. */
  async #look(member: number): Promise<number> {
    const seen = this.#watcher.revision;
    this.#looking = this.#ask(member);
    const revision = await this.#looking;
    this.#looking = null;
    if (this.#watcher.revision > seen) this.#follow();
    return revision;
  }

  async #ask(member: number): Promise<number> {
    // Each says which revision it is of: no quorum has to be asked as well.
    const local = { consistency: 'local' };
    try {
      const [planned] = await Promise.all([this.#askPlan(local), this.#askFile(member, local)]);
      return planned;
    } catch (error) {
      // Between two leaders there is no plan.
      if (error instanceof RpcFailure && error.error.data.retriable) return 0;
      throw error;
    }
  }

  async #askPlan(params: Answer): Promise<number> {
    const answer = (await this.call('placement.plan', params)) as unknown as Plan & Envelope;
    const { revision, term: _, leaderId, ...planned } = answer;
    if (leaderId !== null) this.#leader = Number(leaderId.slice(1)) - 1;
    this.#keep(this.#plans, revision, planned);
    return revision;
  }

  async #askFile(member: number, params: Answer): Promise<void> {
    const { revision, cluster } = await this.#call(member, 'export', params);
    this.#keep(this.#files, revision as number, cluster as ClusterFile);
  }

  #keep<T>(kept: Map<number, T>, revision: number, value: T): void {
    kept.set(revision, value);
    for (const old of kept.keys()) if (kept.size > MOST_KEPT) kept.delete(old);
    const [plan, file] = [this.#plans.get(revision), this.#files.get(revision)];
    if (plan === undefined || file === undefined || revision <= (this.#last?.revision ?? 0)) return;
    this.#last = { revision, plan, file };
    this.#moments.push(this.#last);
  }

  #call(node: number, method: string, params: Answer): Promise<Answer> {
    const socket = this.#sockets[node];
    if (socket === undefined) throw new Error(`there is no node ${node}`);
    return socket.call(method, params);
  }
}
