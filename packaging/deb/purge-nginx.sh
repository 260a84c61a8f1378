# What an nginx owns, or will own when it comes back, is not ours to take; its purge does that.
made=/var/lib/firstbyte-nginx/made
others=$(dpkg-query --show --showformat '${db:Status-Status}\n' nginx nginx-common 2>/dev/null |
	grep -v '^not-installed$' || true)
if [ -z "$others" ] && [ -e "$made" ]; then
	if grep -q -x /etc/nginx/nginx.conf "$made"; then
		rm -rf /etc/nginx /var/log/nginx /var/lib/nginx
	fi
	xargs -d '\n' rm -f <"$made"
	rmdir /var/www/html /var/www 2>/dev/null || true
fi
rm -rf /var/lib/firstbyte-nginx
