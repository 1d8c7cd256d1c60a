import { Gauge, type Registry } from 'prom-client';

export type Labels = Readonly<Record<string, string>>;

export interface Described {
  readonly name: string;
  readonly help: string;
  readonly labelNames?: readonly string[];
}

type Reading = number | readonly (readonly [Labels, number])[];

/** A gauge read at each scrape: a number, or one for each set of labels. */
export function gauge(
  registry: Registry,
  { name, help, labelNames = [] }: Described,
  read: () => Reading | Promise<Reading>,
): void {
  const metric = new Gauge({
    name: `evenkeel_${name}`,
    help,
    labelNames,
    registers: [],
    async collect() {
      const values = await read();
      this.reset();
      if (typeof values === 'number') this.set(values);
      else for (const [labels, value] of values) this.set(labels, value);
    },
  });
  registry.registerMetric(metric);
}
