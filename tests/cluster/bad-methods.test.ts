import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { z } from 'zod';
import { ERRORS } from '../../src/errors.ts';
import { RPC_METHODS, type RpcMethod } from '../../src/wire/index.ts';
import { Cluster, rpc, RpcFailure, until } from '../support/cluster.ts';
import { clusterFile, skewed } from '../support/layouts.ts';

/** More than a body may have. */
const TOO_LONG = 'x'.repeat(2_000_000);
const LONG = 'x'.repeat(5_000);
const DEEP = `${'['.repeat(5_000)}${']'.repeat(5_000)}`;

/** What no param of that type can be. */
const NEVER: Readonly<Record<string, readonly unknown[]>> = {
  string: [LONG, '', null, 7, [], {}],
  integer: [2 ** 53, -(2 ** 53), 1.5, -1, 1e308, null, 'one', LONG],
  boolean: [null, 'perhaps', 2, LONG],
  array: [null, LONG, {}, [LONG], Array.from({ length: 10_000 }, () => null)],
  object: [null, LONG, [], { [LONG]: LONG }, { nested: { nested: LONG } }],
};

/** Codes that say whose fault it was and leave all as it is. */
const REFUSALS = ['invalid_argument', 'limit_exceeded'];

const property = z.object({ type: z.string().optional() });
const shape = z.object({
  properties: z.record(z.string(), property.extend({ anyOf: z.array(property).optional() })),
});

/** Its params, with the JSON type of each and whether `null` says something. */
const properties = (method: RpcMethod): { param: string; type: string; nullable: boolean }[] => {
  const schema = shape.parse(z.toJSONSchema(method.params, { io: 'input', unrepresentable: 'any' }));
  return Object.entries(schema.properties).map(([param, { type, anyOf = [] }]) => {
    const types = [type, ...anyOf.map((each) => each.type)].filter((each) => each !== undefined);
    return { param, type: types.find((each) => each !== 'null') ?? '', nullable: types.includes('null') };
  });
};

const METHODS = RPC_METHODS.map((method) => [method.name, method] as const);
const ROUTES = RPC_METHODS.flatMap(({ name, http }) => (http === null ? [] : [[name, http] as const]));

describe('methods that are asked for what cannot be', () => {
  let cluster: Cluster;
  let before: unknown;
  const exported = async (): Promise<unknown> => (await rpc(cluster.address(0), 'export'))['cluster'];

  beforeAll(async () => {
    cluster = await Cluster.start({ flags: ['--expiry-ms', '3600000', '--lease-ms', '3000000'] });
    const stream = skewed({ name: 's', brokers: ['b1', 'b2'], leaders: [2, 0], replicationFactor: 2 });
    await cluster.import(clusterFile(['b1', 'b2'], [stream], { paused: true }));
    before = await exported();
  });
  afterAll(() => cluster.stop());

  async function refusal(
    method: string,
    params: Readonly<Record<string, unknown>>,
  ): Promise<RpcFailure['error']> {
    try {
      await rpc(cluster.address(1), method, params);
    } catch (error) {
      if (error instanceof RpcFailure) return error.error;
      throw error;
    }
    throw new Error(`${method} took ${JSON.stringify(params).slice(0, 200)}`);
  }

  it.each(METHODS)(
    '%s: every param with what it cannot be, and keys that it does not know',
    async (name, method) => {
      const wrong: [named: string, params: Record<string, unknown>][] = [
        ['unknown', { unknown: 1 }],
        ['xxx', { [LONG]: 1 }],
        ['constructor', { constructor: 2 }],
        ['k0', Object.fromEntries(Array.from({ length: 10_000 }, (_, n) => [`k${n}`, n]))],
      ];
      for (const { param, type, nullable } of properties(method)) {
        const never = NEVER[type];
        if (never === undefined) throw new Error(`${param}: nothing is known that no ${type} can be`);
        for (const value of never) if (value !== null || !nullable) wrong.push([param, { [param]: value }]);
      }
      for (const [named, params] of wrong) {
        const { code, message, data } = await refusal(name, params);
        const said = `${JSON.stringify(params).slice(0, 100)}: ${message}`;
        expect(REFUSALS, said).toContain(data.code);
        expect(code, said).toBe(ERRORS[data.code as keyof typeof ERRORS].rpc);
        expect(data.retriable, said).toBe(false);
        expect(message, said).toMatch(new RegExp(`^${name}: .*"${named}`));
        expect(message.length, said).toBeLessThan(1_000);
      }
    },
  );

  async function ask(verb: string, path: string, body?: string): Promise<[number, string, string]> {
    const response = await fetch(`http://${cluster.address(2)}/v1${path}`, {
      method: verb,
      ...(body === undefined ? {} : { body, headers: { 'content-type': 'application/json' } }),
    });
    const { error } = (await response.json()) as { error: { code: string; message: string } };
    return [response.status, error.code, error.message];
  }

  it.each(ROUTES)('%s over /v1: bodies, keys, verbs', async (_, { verb, path: template }) => {
    const path = template.replaceAll(/\{\w+\}/g, 'none');
    const verbs = ROUTES.filter(([, http]) => http.path === template).map(([, http]) => http.verb as string);
    const other =
      ['GET', 'POST', 'PUT', 'PATCH', 'DELETE'].find((each) => !verbs.includes(each)) ?? 'OPTIONS';
    expect((await ask(other, path)).slice(0, 2)).toEqual([405, 'unknown_method']);
    expect((await ask(verb, `${path}?colour=red`)).slice(0, 2)).toEqual([400, 'invalid_argument']);
    expect((await ask(verb, `${path}?deadlineMs=${'9'.repeat(30)}`)).slice(0, 2)).toEqual([
      400,
      'invalid_argument',
    ]);
    expect((await ask(verb, `${path}?deadlineMs=1&deadlineMs=2`)).slice(0, 2)).toEqual([
      400,
      'invalid_argument',
    ]);
    // A client sends no body with a GET.
    if (verb === 'GET') return;
    for (const body of ['{', '[1]', '7', 'null', DEEP, '{"colour": "red"}', `{"deadlineMs": "soon"}`]) {
      const [status, code, message] = await ask(verb, path, body);
      expect([status, code], `${body.slice(0, 50)}: ${message}`).toEqual([400, 'invalid_argument']);
      expect(message.length).toBeLessThan(1_000);
    }
    const [status, code] = await ask(verb, path, JSON.stringify({ colour: TOO_LONG }));
    expect([status, code]).toEqual([413, 'limit_exceeded']);
  });

  it('changes nothing, on no member', async () => {
    expect(await exported()).toEqual(before);
    await until('one state', async () => cluster.sameHash());
    expect(cluster.nodes.every((node) => node?.running)).toBe(true);
  });
});
