import { setTimeout as sleep } from 'node:timers/promises';
import { rpc, until, type Cluster } from '../support/cluster.ts';

const POLL_MS = 100;
const ANSWER_MS = 5_000;
/** Trouble that lasts must be named within this. */
const NAMED_WITHIN_MS = 30_000;

interface Health {
  readonly healthy: boolean;
  readonly checks: readonly { readonly name: string; readonly ok: boolean; readonly detail: string }[];
}

/** Everything that `cluster.health` complained about, from the start of a round. */
export class HealthLog {
  readonly #cluster: Cluster;
  readonly #lines: string[] = [];
  readonly #loop: Promise<void>;
  #isOn = true;
  #isHealthy = false;

  constructor(cluster: Cluster) {
    this.#cluster = cluster;
    this.#loop = this.#run();
  }

  async stop(): Promise<void> {
    this.#isOn = false;
    await this.#loop;
  }

  /** Waits until health complains of this, from now on. */
  async names(trouble: RegExp): Promise<void> {
    const from = this.#lines.length;
    await until(
      `health to name ${String(trouble)}`,
      async () => {
        const lines = this.#lines.slice(from);
        if (lines.some((line) => trouble.test(line))) return true;
        throw new Error(lines.at(-1) ?? 'nothing was named');
      },
      NAMED_WITHIN_MS,
    );
  }

  async isHealthyAgain(boundMs: number): Promise<void> {
    await until(
      'a healthy cluster',
      async () => {
        if (this.#isHealthy) return true;
        throw new Error(this.#lines.at(-1));
      },
      boundMs,
    );
  }

  async #run(): Promise<void> {
    let node = 0;
    while (this.#isOn) {
      const address = this.#cluster.address(node++ % this.#cluster.nodes.length);
      try {
        const { healthy, checks } = await rpc<Health>(
          address,
          'cluster.health',
          { consistency: 'local' },
          ANSWER_MS,
        );
        this.#isHealthy = healthy;
        for (const { name, ok, detail } of checks) if (!ok) this.#lines.push(`${name}: ${detail}`);
      } catch {
        this.#isHealthy = false;
      }
      await sleep(POLL_MS);
    }
  }
}
