"""The accepted configuration that programs obey, and how the operator's file becomes one."""
