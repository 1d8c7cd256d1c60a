export * from './model.ts';
export * from './plan-types.ts';
