import { WebSocket } from 'ws';

export interface WatchedAssignment {
  readonly shard: string;
  readonly leader: string;
  readonly replicas: readonly string[];
  readonly inSync: readonly string[];
  readonly generation: number;
  readonly epoch: number;
  readonly state: string;
  readonly move: {
    readonly role: string;
    readonly from: string;
    readonly to: string;
    readonly step: string;
  } | null;
}

interface Push {
  readonly type: string;
  readonly revision?: number;
  readonly assignments?: readonly WatchedAssignment[];
  readonly changes?: readonly {
    readonly kind: string;
    readonly assignment?: WatchedAssignment;
    readonly shard?: string;
  }[];
}

export interface LeaderChange {
  readonly shard: string;
  readonly from: string;
  readonly to: string;
  /** Changes of one log entry share it. */
  readonly revision: number;
}

/** A copy of a shard that began to be made. */
export interface CopyStart {
  readonly shard: string;
  readonly to: string;
}

/**
 * Follows the broker protocol's watch feed over whichever node answers, across kills, and keeps every row it
 * was told. It fails loudly when a generation, an epoch or a revision goes back.
 */
export class Watcher {
  readonly rows = new Map<string, WatchedAssignment>();
  readonly history: WatchedAssignment[] = [];
  readonly leaderChanges: LeaderChange[] = [];
  /** Every broker that came into a set of copies that was seen without it. */
  readonly copyStarts: CopyStart[] = [];
  readonly faults: string[] = [];
  /** By shard: the fence that its leader has answered, and the revision that says so. */
  readonly drained = new Map<string, { readonly generation: number; readonly revision: number }>();
  /** Called after each revision. */
  onChange = (): void => {};
  revision = 0;
  private readonly endpoints: readonly string[];
  private next = 0;
  private socket: WebSocket | null = null;
  private closed = false;

  constructor(endpoints: readonly string[]) {
    this.endpoints = endpoints;
    this.connect();
  }

  close(): void {
    this.closed = true;
    this.socket?.terminate();
  }

  private connect(): void {
    if (this.closed) return;
    const endpoint = this.endpoints[this.next++ % this.endpoints.length] ?? '';
    const socket = new WebSocket(`ws://${endpoint}/broker`, 'evenkeel.broker.v1+json', {
      perMessageDeflate: false,
    });
    this.socket = socket;
    socket.on('open', () => {
      socket.send(
        JSON.stringify({
          id: 1,
          type: 'watch',
          ...(this.revision > 0 ? { fromRevision: this.revision } : {}),
        }),
      );
    });
    socket.on('message', (data: Buffer) => this.take(JSON.parse(data.toString('utf8')) as Push));
    socket.on('error', () => socket.terminate());
    socket.on('close', () => setTimeout(() => this.connect(), 50));
  }

  private take(push: Push): void {
    if (push.type === 'error') {
      this.socket?.terminate();
      return;
    }
    if (push.type === 'watch.snapshot')
      for (const row of push.assignments ?? []) this.write(row, push.revision ?? 0);
    if (push.type === 'watch.changes') {
      if (push.revision !== undefined && push.revision < this.revision) {
        this.faults.push(`revision ${push.revision} after ${this.revision}`);
      }
      for (const change of push.changes ?? []) {
        if (change.kind === 'assignment' && change.assignment) {
          this.noteDrained(change.assignment, push.revision ?? 0);
          this.write(change.assignment, push.revision ?? 0);
        }
        if (change.kind === 'removed' && change.shard) this.rows.delete(change.shard);
      }
    }
    if (push.type.startsWith('watch.') && push.revision !== undefined) {
      this.revision = Math.max(this.revision, push.revision);
      this.onChange();
    }
  }

  /** Only `drained` changes a row without a new generation. */
  private noteDrained({ shard, generation, state }: WatchedAssignment, revision: number): void {
    if (state !== 'draining' || this.rows.get(shard)?.generation !== generation) return;
    this.drained.set(shard, { generation, revision });
  }

  private write(row: WatchedAssignment, revision: number): void {
    const before = this.rows.get(row.shard);
    this.rows.set(row.shard, row);
    if (before && before.generation === row.generation) return;
    this.history.push(row);
    if (!before) return;
    if (row.generation < before.generation) {
      this.faults.push(`${row.shard}: generation ${row.generation} after ${before.generation}`);
    }
    if (row.epoch < before.epoch) this.faults.push(`${row.shard}: epoch ${row.epoch} after ${before.epoch}`);
    for (const to of row.replicas) {
      if (!before.replicas.includes(to)) this.copyStarts.push({ shard: row.shard, to });
    }
    if (row.leader !== before.leader) {
      this.leaderChanges.push({ shard: row.shard, from: before.leader, to: row.leader, revision });
    }
  }
}

/** Leaders per broker of one resource, as `4,4,4` in the brokers' order. */
export function leaderCounts(
  rows: Iterable<WatchedAssignment>,
  resource: string,
  brokers: readonly string[],
): number[] {
  const counts = brokers.map(() => 0);
  for (const row of rows) {
    if (row.shard.slice(0, row.shard.lastIndexOf('/')) !== resource) continue;
    const index = brokers.indexOf(row.leader);
    if (index >= 0) counts[index] = (counts[index] ?? 0) + 1;
  }
  return counts;
}
