"""A signature as `ssh-keygen -Y sign -n lb-appliance` of OpenSSH 9.2 has written it, and its fingerprint."""

from typing import Final

SIGNED: Final = b"hello\n"
FINGERPRINT: Final = "SHA256:HvpDMO//JHQkVhf+McpmpmJC8euwW9EdU+9RGW/Y5w4"
SIGNATURE: Final = b"""\
-----BEGIN SSH SIGNATURE-----
U1NIU0lHAAAAAQAAADMAAAALc3NoLWVkMjU1MTkAAAAgDxQ6rDLTlIohYtLcOtXYys6/2/
ANCckjpdkY9IYE7HYAAAAMbGItYXBwbGlhbmNlAAAAAAAAAAZzaGE1MTIAAABTAAAAC3Nz
aC1lZDI1NTE5AAAAQKT9r4N0XZZKDK4vBX6DE79jgS5t7QzKrzA1OaOGxFU0lBfpeSGR2P
mIDW3LEtOX+69lbs1nCmGahp++RJyh8Qk=
-----END SSH SIGNATURE-----
"""
