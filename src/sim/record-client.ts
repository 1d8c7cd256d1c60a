import { DATA_PATH, DATA_SUBPROTOCOL, MAX_DATA_FRAME_BYTES } from '../broker/index.ts';
import { isSimulated } from './disk.ts';
import type { Net } from '../net.ts';
import type { SimCluster } from './cluster.ts';
import type { SimRecordOperation } from './plan.ts';
import type { RecordChecks, SeenRecord } from './record-checks.ts';
import type { SimRandom } from './random.ts';
import { SimProcess } from './world.ts';

const REQUEST_MS = 2_000;
const OPERATION_MS = 6_000;
const RETRY_MS = 200;
/** How often a client asks the broker that answered it last, without looking who leads now. */
const HABIT = 0.5;

type Answer =
  | { readonly type: 'append.ok'; readonly offset: number }
  | { readonly type: 'read.ok'; readonly records: readonly SeenRecord[]; readonly end: number }
  | { readonly type: 'error'; readonly error: { readonly code: string; readonly message: string } };

/** A client of the brokers: finds a shard's leader as some member has it, appends, reads, and never appends a record twice. */
export class RecordClient {
  readonly name: string;
  done = false;
  readonly #cluster: SimCluster;
  readonly #checks: RecordChecks;
  readonly #process: SimProcess;
  readonly #net: Net;
  readonly #random: SimRandom;
  /** Who answered for a shard last: clients go on asking it, right or wrong. */
  readonly #lastLeader = new Map<string, string>();
  /** Which member is asked next. */
  #turn = 0;

  constructor(name: string, cluster: SimCluster) {
    this.name = name;
    this.#cluster = cluster;
    this.#checks = cluster.records;
    this.#process = new SimProcess(cluster.world, name, { life: 1, driftPart: 0, wallOffsetMs: 0 });
    this.#random = cluster.world.random(`client ${name}`);
    this.#net = cluster.network.netOf(this.#process);
  }

  async run(operations: readonly SimRecordOperation[]): Promise<void> {
    for (const operation of operations) {
      await this.#sleep(operation.thinkMs);
      const untilMs = this.#cluster.world.nowMs + OPERATION_MS;
      while (!(await this.#attempt(operation)) && this.#cluster.world.nowMs < untilMs) {
        await this.#sleep(RETRY_MS);
      }
    }
    this.done = true;
  }

  /** One append to each of these shards, tried once, all at the same time. */
  async appendOnce(shards: readonly string[], value: string): Promise<void> {
    const tries = shards.map((shard) =>
      this.#attempt({ client: this.name, type: 'append', shard, value, thinkMs: 0 }),
    );
    await Promise.all(tries);
  }

  /** Reads shards until each has answered. */
  async readAll(shards: readonly string[]): Promise<void> {
    for (const shard of shards) {
      const operation = { client: this.name, type: 'read' as const, shard, value: '', thinkMs: 0 };
      while (!(await this.#attempt(operation))) await this.#sleep(RETRY_MS);
    }
    this.done = true;
  }

  /** True once it is known what became of it, or it may not be tried again. */
  async #attempt({ type, shard, value }: SimRecordOperation): Promise<boolean> {
    const address = this.#leaderAddress(shard);
    if (address === null) return false;
    const leastEnd = this.#checks.acknowledgedEnd(shard);
    const request = type === 'append' ? { type, shard, records: [value] } : { type, shard, from: 0 };
    const answer = await this.#request(address, request);
    if (answer === 'unreachable') return false;
    if (answer === 'unanswered') return type === 'append';
    switch (answer.type) {
      case 'append.ok':
        this.#lastLeader.set(shard, address);
        this.#cluster.service.served(shard);
        this.#checks.acknowledged(shard, answer.offset, value, address);
        this.#cluster.copies.acknowledged(shard);
        return true;
      case 'read.ok':
        this.#lastLeader.set(shard, address);
        this.#checks.read(shard, answer, leastEnd, address);
        this.#cluster.copies.acknowledged(shard);
        return true;
      case 'error':
        if (answer.error.code === 'unavailable') return false;
        if (answer.error.code === 'outcome_unknown') return true;
        // Its disk was made to fail.
        if (answer.error.code === 'internal' && isSimulated(answer.error.message)) return true;
        throw new Error(`${address} answers ${type} with ${answer.error.code}: ${answer.error.message}`);
    }
  }

  #leaderAddress(shard: string): string | null {
    const known = this.#lastLeader.get(shard);
    if (known !== undefined && this.#random.chance(HABIT)) return known;
    const { members } = this.#cluster.plan;
    const id = members[this.#turn++ % members.length] as string;
    return this.#cluster.member(id)?.placement?.addressOf(shard) ?? null;
  }

  async #request(address: string, request: object): Promise<Answer | 'unreachable' | 'unanswered'> {
    const options = {
      path: DATA_PATH,
      subprotocol: DATA_SUBPROTOCOL,
      maxPayloadBytes: MAX_DATA_FRAME_BYTES,
      timeoutMs: REQUEST_MS,
    };
    const connection = await this.#net.connect(address, options).catch(() => null);
    if (connection === null) return 'unreachable';
    return new Promise((resolve) => {
      const timer = this.#process.clock.setTimeout(() => connection.terminate(), REQUEST_MS);
      connection.onMessage = (data) => {
        resolve(JSON.parse(String(data)) as Answer);
        connection.close(1000, 'done');
      };
      connection.onClose = () => {
        this.#process.clock.clearTimeout(timer);
        resolve('unanswered');
      };
      connection.send(JSON.stringify({ id: 1, ...request }));
    });
  }

  #sleep(ms: number): Promise<void> {
    return new Promise((resolve) => {
      this.#process.clock.setTimeout(resolve, ms);
    });
  }
}
