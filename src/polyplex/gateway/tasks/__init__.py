"""Tasks of both eras, passed through and translated: "Tasks" of 2025-11-25, and the extension for the modern era.


`calls` makes them of tool calls, `methods` answers `tasks/...`, `legacy` and `modern` talk to servers of either era,
`asks` keeps a server's questions, `watching` tells of changes, `reverse` is for tasks that clients run for servers.
"""
